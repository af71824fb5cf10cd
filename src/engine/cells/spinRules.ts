/**
 * Rules for a spin that do not depend on its cell queue: whether spins may be dealt now, when a spin is
 * answered, and which earlier spin in the ledger has its request id.
 */
import { entryTimeMs } from '../../domain/entryId.js';
import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Game, Partner } from '../../domain/game.js';
import { waitsForLedger } from '../../domain/games/index.js';
import type { EntryKind } from '../../domain/ledgerEntry.js';
import type { SpinIds } from '../../domain/spinId.js';
import { type SpinTail, tailOfEntry } from '../../domain/spinTail.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { Catalog } from '../catalog/catalog.js';
import type { Staleness } from '../catalog/staleness.js';
import type { EngineStore } from '../engine.store.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { RequestIds } from '../requestIds/requestIds.js';
import type { FoundRequest } from '../requestIds/secondPass.js';
import type { Confirmations } from './confirmations.js';
import type { MovedPartners } from './movedPartners.js';

/** A spin or round in the ledger that is bound to a requestId. Redis has already released this requestId. */
interface BoundEntry {
  readonly kind: EntryKind;
  readonly gameId: number;
  readonly playerId: string;
  readonly spinId: string;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
  readonly tail: SpinTail;
}

/**
 * A condition of this process that may forbid this process to deal: its program files differ from the build,
 * or it does not support the data format in use.
 */
interface DealingFault {
  readonly problem: string | undefined;
}

export class SpinRules {
  /** Checks under way of whether a raffle is sold out, by game. Concurrent requests share one check. */
  readonly #looks = new Map<number, Promise<boolean>>();

  constructor(
    private readonly parts: {
      readonly catalog: Catalog;
      readonly freshness: Staleness;
      readonly faults: readonly DealingFault[];
      readonly store: Pick<EngineStore, 'ledgerEntries' | 'communal'>;
      readonly spinIds: SpinIds;
      readonly nodes: Pick<RedisNodes, 'cell'>;
      readonly confirmations: Pick<Confirmations, 'cameTo'>;
      readonly moved: MovedPartners;
      readonly requestIds: RequestIds;
      /** Value of `ACK`: when a spin is answered, unless its game requires a commit first. */
      readonly ack: Parameters<typeof waitsForLedger>[1];
      readonly deadlineMs: number;
    },
  ) {}

  /**
   * Returns the error because of which no spin of a partner may be dealt now, whatever the game: dealing is
   * switched off, or the switch can't be read. Undefined if dealing is allowed.
   */
  stopOf({ partnerId }: Partner): ErrorEntry | undefined {
    const { catalog, freshness, faults } = this.parts;
    if (!catalog.dealsFor(partnerId)) return ERRORS.dealingOff;
    for (const { problem } of faults) if (problem !== undefined) return ERRORS.unavailable;
    return freshness.isBehind ? ERRORS.unavailable : undefined;
  }

  /** True if spins of the game are answered only after their commit. */
  waitsForLedger(game: Game | undefined): boolean {
    return waitsForLedger(game?.kind, this.parts.ack);
  }

  /** Number of seconds for which the request id of a spin or deal stays bound. */
  get requestIdBindsSeconds(): number {
    return this.parts.requestIds.bindsSeconds;
  }

  /**
   * True if a ticket of the raffle may have been sold under a requestId that is no longer in Redis or in the
   * filters.
   */
  mayForget({ kind, sealedAtMs, partnerId }: Game): boolean {
    if (sealedAtMs === undefined) return false;
    const { catalog, requestIds } = this.parts;
    const boundFromMs = entryTimeMs(requestIds.boundFromId(catalog.partner(partnerId)!.cell));
    return kind.lifeCycle.mayBindInLedger({ sealedAtMs, boundFromMs });
  }

  /**
   * Looks in the ledger for the entry of a requestId that Redis does not bind. Rejects if the ledger can't be
   * read by the deadline, on the scale of performance.now().
   */
  async findBound(
    partner: Partner,
    requestId: string,
    game: Game | undefined,
    deadline: number,
  ): Promise<FoundRequest<BoundEntry>> {
    const { store, spinIds, requestIds } = this.parts;
    const found = await withTimeout(
      requestIds.find(partner, requestId),
      Math.max(0, deadline - performance.now()),
    );
    const { version } = found;
    let { entry } = found;
    if (entry === undefined && game !== undefined && this.mayForget(game))
      entry = await store.ledgerEntries.findTicket(game.gameId, requestId);
    if (entry === undefined) return { entry, version };
    const tail = tailOfEntry(entry, await store.communal.noticeOfSpin(entry.id));
    return { entry: { ...entry, spinId: spinIds.encodeOne(entry.id, partner.partnerId), tail }, version };
  }

  /**
   * Resolves to true once the last ticket of a sold-out raffle is committed, or to false if that can't be
   * confirmed by the deadline, on the scale of performance.now().
   */
  isSoldOut({ gameId, partnerId }: Game, deadline: number): Promise<boolean> {
    let look = this.#looks.get(gameId);
    if (look === undefined) {
      look = this.#isClosed(gameId, partnerId)
        .catch(() => false)
        .finally(() => this.#looks.delete(gameId));
      this.#looks.set(gameId, look);
    }
    return withTimeout(look, Math.max(0, deadline - performance.now())).catch(() => false);
  }

  /** Waits until the last ticket is committed. The same transaction closes the raffle. */
  async #isClosed(gameId: number, partnerId: number): Promise<boolean> {
    const { catalog, nodes, confirmations, deadlineMs } = this.parts;
    const deadline = performance.now() + deadlineMs;
    const { cell } = catalog.partner(partnerId)!;
    const newest = await nodes.cell(cell).newestInOutbox();
    if (!(await confirmations.cameTo(cell, newest, deadlineMs))) return false;
    await withTimeout(catalog.refresh(), deadline - performance.now());
    return catalog.game(gameId)?.status === 'CLOSED';
  }

  /**
   * Returns the partner with the cell to which a spin should be sent again, after a cell rejected it because
   * of a move. Undefined if the spin must be refused.
   * @param since arrival of the request, on the scale of performance.now()
   */
  whereIs(known: Partner, since: number): Promise<Partner | undefined> {
    return this.parts.moved.where(known, since);
  }
}
