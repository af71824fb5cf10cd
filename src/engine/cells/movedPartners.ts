/**
 * Where the requests of a partner go on whose cell turned them away, since the partner moves to another one: as soon as the catalog
 * knows the new cell, and to the same cell again from time to time, should the move have been given up.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Partner } from '../../domain/game.js';

const LOOK_EVERY_MS = 25;
/** After so long the old cell is asked again. */
const LOOKS_MAX = 8;
/** A request is held for so long at the most, all times together. */
const HELD_MS_MAX = 5000;

export interface MovedPartnersOptions {
  readonly partner: (partnerId: number) => Partner | undefined;
  /** Reads what is new of partners. */
  readonly refresh: () => Promise<void>;
  /** Reads what is new of the request ids that cells have released: those of the old cell bind in the new one. */
  readonly refreshIds: () => Promise<void>;
  readonly deadlineMs: number;
}

export class MovedPartners {
  readonly #options: MovedPartnersOptions;
  /** By partner: all requests that wait share one look. */
  readonly #looks = new Map<number, Promise<Partner | undefined>>();

  constructor(options: MovedPartnersOptions) {
    this.#options = options;
  }

  /**
   * The partner as it is once its request should be sent again.
   * @param known the partner whose cell turned the request away
   * @param since when it was turned away first, as performance.now() counts
   * @returns undefined: it was held for too long, and is to be refused
   */
  async where(known: Partner, since: number): Promise<Partner | undefined> {
    const heldMaxMs = Math.min(HELD_MS_MAX, this.#options.deadlineMs);
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
    const { partner, refresh, refreshIds } = this.#options;
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      await refresh().catch(() => {});
      const now = partner(partnerId);
      // A partner that has come back to the same cell has another newest move.
      if (now !== undefined && (now.cell !== cell || now.newestMove !== newestMove)) {
        await refreshIds().catch(() => {});
        return now;
      }
      await pause(LOOK_EVERY_MS);
    }
    return partner(partnerId);
  }
}
