/** What a spin must know beside its queue: whether anything may be dealt, when it is answered, what the ledger has of it. */
import { entryTimeMs } from '../../domain/entryId.js';
import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Game, Partner } from '../../domain/game.js';
import { waitsForLedger } from '../../domain/games/index.js';
import type { EntryKind } from '../../domain/ledgerEntry.js';
import type { SpinIds } from '../../domain/spinId.js';
import { type SpinTail, tailOfEntry } from '../../domain/spinTail.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { Catalog } from '../catalog/catalog.js';
import type { EngineStore } from '../engine.store.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { RequestIds } from '../requestIds/requestIds.js';
import type { FoundRequest } from '../requestIds/secondPass.js';
import type { Confirmations } from './confirmations.js';
import type { MovedPartners } from './movedPartners.js';
import type { CatalogFreshness } from './spinPath.js';

/** What the ledger has of a requestId that Redis binds no more: a spin, or round, as it was dealt. */
interface BoundEntry {
  readonly kind: EntryKind;
  readonly gameId: number;
  readonly playerId: string;
  readonly spinId: string;
  readonly outcomeCode: number;
  /** Micro-USD after it. */
  readonly balanceMicros: number;
  readonly tail: SpinTail;
}

/** Something of this process that may forbid it to deal: its files differ from the build's, or it does not read what is written. */
interface DealingFault {
  readonly problem: string | undefined;
}

export interface SpinRulesParts {
  readonly catalog: Catalog;
  readonly freshness: CatalogFreshness;
  readonly faults: readonly DealingFault[];
  readonly store: Pick<EngineStore, 'ledgerEntries' | 'communal'>;
  readonly spinIds: SpinIds;
  readonly nodes: Pick<RedisNodes, 'cell'>;
  readonly confirmations: Pick<Confirmations, 'cameTo'>;
  readonly moved: MovedPartners;
  readonly requestIds: RequestIds;
  /** When spins are answered that no rule of their game holds back. */
  readonly ack: Parameters<typeof waitsForLedger>[1];
  readonly deadlineMs: number;
}

export class SpinRules {
  readonly #parts: SpinRulesParts;
  /** Whether a raffle is sold out, by game: everybody who asks meanwhile shares one look. */
  readonly #looks = new Map<number, Promise<boolean>>();

  constructor(parts: SpinRulesParts) {
    this.#parts = parts;
  }

  /** Why nothing may be dealt for a partner now, whatever the game: a switch, or that this can't be known. Undefined: it may. */
  stopOf({ partnerId }: Partner): ErrorEntry | undefined {
    const { catalog, freshness, faults } = this.#parts;
    if (!catalog.dealsFor(partnerId)) return ERRORS.dealingOff;
    for (const { problem } of faults) if (problem !== undefined) return ERRORS.unavailable;
    return freshness.isBehind ? ERRORS.unavailable : undefined;
  }

  /** A spin of the game is answered only once the ledger has it. */
  waitsForLedger(game: Game | undefined): boolean {
    return waitsForLedger(game?.kind, this.#parts.ack);
  }

  /** For how long the request id of a spin or deal binds that is dealt now, seconds. */
  get requestIdBindsSeconds(): number {
    return this.#parts.requestIds.bindsSeconds;
  }

  /** A ticket of the raffle may have been sold under a requestId that neither Redis nor its filters know any more. */
  mayForget({ kind, sealedAtMs, partnerId }: Game): boolean {
    if (sealedAtMs === undefined) return false;
    const { catalog, requestIds } = this.#parts;
    const boundFromMs = entryTimeMs(requestIds.boundFromId(catalog.partner(partnerId)!.cell));
    return kind.lifeCycle.mayBindInLedger({ sealedAtMs, boundFromMs });
  }

  /** What the ledger has of a requestId that Redis does not bind. Rejects where that can't be known now. */
  async findBound(
    partner: Partner,
    requestId: string,
    game: Game | undefined,
  ): Promise<FoundRequest<BoundEntry>> {
    const { store, spinIds, requestIds, deadlineMs } = this.#parts;
    const found = await withTimeout(requestIds.find(partner, requestId), deadlineMs);
    const { version } = found;
    let { entry } = found;
    if (entry === undefined && game !== undefined && this.mayForget(game))
      entry = await store.ledgerEntries.findTicket(game.gameId, requestId);
    if (entry === undefined) return { entry, version };
    const tail = tailOfEntry(entry, await store.communal.noticeOfSpin(entry.id));
    return { entry: { ...entry, spinId: spinIds.encodeOne(entry.id, partner.partnerId), tail }, version };
  }

  /** All tickets of a raffle are dealt. True once the last one is committed; false where that does not come to be known. */
  isSoldOut({ gameId, partnerId }: Game): Promise<boolean> {
    let look = this.#looks.get(gameId);
    if (look === undefined) {
      look = this.#isClosed(gameId, partnerId)
        .catch(() => false)
        .finally(() => this.#looks.delete(gameId));
      this.#looks.set(gameId, look);
    }
    return look;
  }

  /** Waits until the last ticket is committed, which closes the raffle in the same transaction. */
  async #isClosed(gameId: number, partnerId: number): Promise<boolean> {
    const { catalog, nodes, confirmations, deadlineMs } = this.#parts;
    const deadline = performance.now() + deadlineMs;
    const { cell } = catalog.partner(partnerId)!;
    const newest = await nodes.cell(cell).newestInOutbox();
    if (!(await confirmations.cameTo(cell, newest, deadlineMs))) return false;
    await withTimeout(catalog.refresh(), deadline - performance.now());
    return catalog.game(gameId)?.status === 'CLOSED';
  }

  /**
   * The partner as it is once a spin should be sent again that its cell turned away, since it moves; undefined: refuse the spin.
   * @param since when it was turned away first, as performance.now() counts
   */
  whereIs(known: Partner, since: number): Promise<Partner | undefined> {
    return this.#parts.moved.where(known, since);
  }
}
