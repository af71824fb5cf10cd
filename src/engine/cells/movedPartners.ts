/**
 * Finds the cell to which a request is sent again, after the partner's old cell rejected it because of a
 * move. The request is sent to the new cell as soon as the catalog knows of the move. From time to time the
 * request is also sent to the old cell again, in case the move was cancelled.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Partner } from '../../domain/game.js';
import type { Catalog } from '../catalog/catalog.js';
import type { RequestIds } from '../requestIds/requestIds.js';

const LOOK_EVERY_MS = 25;
/** Number of polls of the catalog after which the request is sent to the old cell again. */
const LOOKS_MAX = 8;
/** Maximum time that a request is held because of its partner's move, over all attempts, in ms. */
const HELD_MS_MAX = 5000;

export class MovedPartners {
  /** Polls under way by partner. All waiting requests of a partner share one poll. */
  readonly #looks = new Map<number, Promise<Partner | undefined>>();

  constructor(
    private readonly catalog: Pick<Catalog, 'partner' | 'refresh'>,
    private readonly requestIds: Pick<RequestIds, 'refresh'>,
    private readonly deadlineMs: number,
  ) {}

  /**
   * Waits for the partner's move, and returns the partner with the cell to which its request should be sent
   * again.
   * @param known the partner with the cell that rejected the request
   * @param since arrival of the request, on the scale of performance.now()
   * @returns undefined if the request was held for too long and must be refused
   */
  async where(known: Partner, since: number): Promise<Partner | undefined> {
    const heldMaxMs = Math.min(HELD_MS_MAX, this.deadlineMs);
    if (performance.now() - since > heldMaxMs) return undefined;
    const { partnerId } = known;
    let look = this.#looks.get(partnerId);
    if (look === undefined) {
      look = this.#look(known).finally(() => this.#looks.delete(partnerId));
      this.#looks.set(partnerId, look);
    }
    return look;
  }

  async #look({ partnerId, cell, newestMove }: Partner): Promise<Partner | undefined> {
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      await this.catalog.refresh().catch(() => {});
      const now = this.catalog.partner(partnerId);
      // A partner that has moved back to the same cell has a newer move number.
      if (now !== undefined && (now.cell !== cell || now.newestMove !== newestMove)) {
        // Request ids that were bound in the old cell stay bound in the new cell.
        await this.requestIds.refresh().catch(() => {});
        return now;
      }
      await pause(LOOK_EVERY_MS);
    }
    return this.catalog.partner(partnerId);
  }
}
