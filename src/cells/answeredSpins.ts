/**
 * The spins that this process has answered and that are not known to be in the ledger. Where a primary dies for good, its replica may
 * lack the newest of them: once the cell has begun another epoch, nothing of the epoch before can be booked any more, and what the
 * ledger lacks then is lost. It is written down (postgres/lostSpins.ts).
 *
 *   answered ──> remembered ──booked──> forgotten
 *                    └──the cell begins another epoch──> looked up in the ledger ──> forgotten, or written down as lost
 */
import { entryCell } from '../domain/entryId.js';
import type { EventEmitter } from '../events.js';
import type { AnsweredSpin } from '../postgres/lostSpins.js';
import type { Store } from '../postgres/store.js';
import { PeriodicService } from '../runtime/periodicService.js';
import type { SpinRequest, SpinResult } from './deal.js';
import type { CellReplies } from './operation.js';

const TURN_MS = 500;
/** A minute of 2,000 spins a second, some 30 MB. Beyond it, while Postgres is away, the oldest are no more known by name. */
const SPINS_MAX = 120_000;

type Replies = CellReplies<SpinResult>;

/** The spins of one call. */
class Answered {
  readonly epoch: string;
  readonly newestId: bigint;
  /** How many they are at the most. */
  readonly size: number;
  readonly #cell: number;
  /** The ledger has most calls within one turn: until then they stay as they are, which costs a spin next to nothing. */
  #call: { readonly requests: readonly SpinRequest[]; readonly replies: Replies } | undefined;
  #spins: readonly AnsweredSpin[] = [];

  constructor(cell: number, epoch: string, requests: readonly SpinRequest[], replies: Replies) {
    this.epoch = epoch;
    this.#cell = cell;
    this.newestId = newestOf(cell, requests, replies);
    this.size = requests.length;
    this.#call = { requests, replies };
  }

  /** By name; what else the call holds is let go. */
  spins(): readonly AnsweredSpin[] {
    if (this.#call !== undefined) this.#spins = this.#named(this.#call.requests, this.#call.replies);
    this.#call = undefined;
    return this.#spins;
  }

  #named(requests: readonly SpinRequest[], { replies, entryId }: Replies): AnsweredSpin[] {
    const spins: AnsweredSpin[] = [];
    for (let i = 0; i < requests.length; i++) {
      const { partner, gameId, playerId, requestId, waitsForLedger } = requests[i]!;
      const reply = replies[i];
      if (waitsForLedger || reply === undefined) continue;
      const id = entryId(i);
      if (id === 0n || entryCell(id) !== this.#cell) continue;
      const { partnerId } = partner;
      const { outcomeCode, balanceMicros } = reply;
      spins.push({ entryId: id, partnerId, gameId, playerId, requestId, outcomeCode, balanceMicros });
    }
    return spins;
  }
}

/** Of the cell's entries that a call's replies tell of; 0 where they tell of none. What a partner brought from another cell is booked. */
function newestOf(cell: number, requests: readonly SpinRequest[], replies: Replies): bigint {
  const { entryId, newestPlace } = replies;
  if (newestPlace !== undefined) return entryId(newestPlace);
  let newest = 0n;
  for (let i = 0; i < requests.length; i++) {
    const id = entryId(i);
    if (id > newest && entryCell(id) === cell) newest = id;
  }
  return newest;
}

interface Cell {
  /** In the order in which they were answered. */
  batches: Answered[];
  /** How many were forgotten for want of room, and the newest of them. */
  dropped: { spins: number; newestId: bigint; epoch: string } | undefined;
}

export interface AnsweredSpinsOptions {
  /** Dataset and number of the epoch that a cell is at. */
  readonly epochOf: (cell: number) => string | undefined;
  readonly store: Pick<Store, 'recordLostSpins'>;
  readonly events: EventEmitter;
}

export class AnsweredSpins extends PeriodicService {
  readonly name = 'lost spins';
  readonly #options: AnsweredSpinsOptions;
  readonly #cells = new Map<number, Cell>();
  #spins = 0;

  constructor(options: AnsweredSpinsOptions) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#options = options;
  }

  /** Spins that are remembered, at the most. */
  get size(): number {
    return this.#spins;
  }

  /** Remembers the spins of a call that are answered now: those that don't wait for the ledger. */
  remember(cell: number, epoch: string, requests: readonly SpinRequest[], replies: Replies): void {
    const answered = new Answered(cell, epoch, requests, replies);
    if (answered.newestId === 0n) return;
    this.#cell(cell).batches.push(answered);
    this.#spins += answered.size;
    while (this.#spins > SPINS_MAX) this.#dropOldest();
  }

  /** The ledger has every entry of the cell up to the cursor. */
  booked(cell: number, epoch: string, cursor: bigint): void {
    const known = this.#cells.get(cell);
    if (known === undefined) return;
    const { batches, dropped } = known;
    if (dropped?.epoch === epoch && dropped.newestId <= cursor) known.dropped = undefined;
    if (batches.length === 0) return;
    known.batches = batches.filter((each) => each.epoch !== epoch || each.newestId > cursor);
    for (const each of batches) if (each.epoch === epoch && each.newestId <= cursor) this.#spins -= each.size;
  }

  /** Looks up what was answered under epochs that are over. */
  protected async turn(): Promise<void> {
    const { epochOf, store, events } = this.#options;
    for (const { batches } of this.#cells.values()) for (const each of batches) each.spins();
    for (const [cell, known] of this.#cells) {
      const now = epochOf(cell);
      const over = known.batches.filter(({ epoch }) => epoch !== now);
      const { dropped } = known;
      const wereDropped = dropped !== undefined && dropped.epoch !== now;
      if (now === undefined || (over.length === 0 && !wereDropped)) continue;
      const notRemembered = wereDropped ? dropped.spins : 0;
      const spins = over.flatMap((each) => each.spins());
      const lost = await store.recordLostSpins({ cell, epoch: now, spins, notRemembered });
      for (const each of over) this.#spins -= each.size;
      known.batches = known.batches.filter((each) => !over.includes(each));
      if (known.dropped === dropped && wereDropped) known.dropped = undefined;
      if (lost + notRemembered > 0)
        events.emit('SpinsLost', { cell, epoch: now, spins: lost, notRemembered });
    }
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'lost spins', error });
  }

  /** Of the cell that has most. */
  #dropOldest(): void {
    let fullest: Cell | undefined;
    for (const cell of this.#cells.values())
      if (fullest === undefined || cell.batches.length > fullest.batches.length) fullest = cell;
    const oldest = fullest?.batches.shift();
    if (fullest === undefined || oldest === undefined) return;
    const { epoch, newestId, size } = oldest;
    this.#spins -= size;
    const before = fullest.dropped?.epoch === epoch ? fullest.dropped.spins : 0;
    fullest.dropped = { epoch, newestId, spins: before + oldest.spins().length };
  }

  #cell(cell: number): Cell {
    let known = this.#cells.get(cell);
    if (known === undefined) {
      known = { batches: [], dropped: undefined };
      this.#cells.set(cell, known);
    }
    return known;
  }
}
