/**
 * Remembers the spins that this process has answered and that may not be committed yet. If a primary is lost,
 * its replica may lack the newest of these spins. Once the cell has begun its next epoch, no entry of the
 * previous epoch can be committed any more. A remembered spin that the ledger lacks at that point is lost,
 * and is recorded as lost (answered.store.ts).
 *
 *   answered ──> remembered ──committed──> forgotten
 *                    └──the cell begins its next epoch──> looked up in the ledger
 *                                                            └──> forgotten, or recorded as lost
 */

import { entryCell } from '../../domain/entryId.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { EngineStore } from '../engine.store.js';
import { type EventEmitter, taskFailed } from '../processEvents.js';
import { AnsweredChunk, CHUNK_BYTES } from './answeredChunk.js';
import { isSpinItem } from './batch.js';
import type { DealRequest, SpinResult } from './deal.js';
import type { CellReplies } from './operation.js';

const TURN_MS = 500;
/**
 * Maximum number of chunks in memory, enough for one minute at 2,000 spins a second. When Postgres is
 * unavailable for longer, the oldest spins are dropped and only counted.
 */
const CHUNKS_MAX = 16_777_216 / CHUNK_BYTES;
const SPARE_MAX = 16;

interface Cell {
  /** Chunks in the order in which their spins were answered. New spins are written to the last chunk. */
  chunks: AnsweredChunk[];
  /** Number of spins that were dropped for lack of room, and the newest entry among them. */
  dropped: { spins: number; newestId: bigint; epoch: string } | undefined;
}

export interface AnsweredSpinsOptions {
  /** Returns the current epoch of a cell, as dataset and number. */
  readonly epochOf: (cell: number) => string | undefined;
  readonly store: { readonly answered: Pick<EngineStore['answered'], 'recordLost'> };
  readonly events: EventEmitter;
}

export class AnsweredSpins extends PeriodicService {
  readonly name = 'lost spin record';
  readonly #options: AnsweredSpinsOptions;
  readonly #cells = new Map<number, Cell>();
  readonly #spare: AnsweredChunk[] = [];
  #chunks = 0;

  constructor(options: AnsweredSpinsOptions) {
    super({ everyMs: TURN_MS }, taskFailed(options.events, 'lost spin record'));
    this.#options = options;
  }

  /**
   * Remembers the spins of a call that are about to be answered. Spins that wait for the ledger are skipped,
   * because they are committed before they are answered.
   */
  remember(
    cell: number,
    epoch: string,
    requests: readonly DealRequest[],
    { replies, entryId, newestPlace }: CellReplies<SpinResult>,
  ): void {
    const newestId = newestPlace === undefined ? 0n : entryId(newestPlace);
    let chunk: AnsweredChunk | undefined;
    for (let i = 0; i < requests.length; i++) {
      const request = requests[i]!;
      const reply = replies[i];
      if (reply === undefined || !isSpinItem(request) || request.waitsForLedger) continue;
      if (reply.kind !== 'dealt' && reply.kind !== 'replayed') continue;
      const isDealt = reply.kind === 'dealt';
      const id = entryId(i);
      // A replayed spin may have been dealt in the cell from which the partner moved to this cell. The spin's
      // entry is already committed.
      if (!isDealt && entryCell(id) !== cell) continue;
      if (chunk === undefined || !chunk.hasRoom) chunk = this.#open(cell, epoch);
      chunk.add(id, request, reply, isDealt ? newestId : id);
    }
  }

  /** Forgets the spins of a cell up to the cursor, because the ledger has every entry up to the cursor. */
  booked(cell: number, epoch: string, cursor: bigint): void {
    const known = this.#cells.get(cell);
    if (known === undefined) return;
    if (known.dropped?.epoch === epoch && known.dropped.newestId <= cursor) known.dropped = undefined;
    if (known.chunks.length > 0)
      this.#forget(known, (chunk) => chunk.epoch === epoch && chunk.newestId <= cursor);
  }

  /** Looks up the answered spins of ended epochs in the ledger. */
  protected async turn(): Promise<void> {
    const { epochOf, store, events } = this.#options;
    for (const [cell, known] of this.#cells) {
      const now = epochOf(cell);
      const over = known.chunks.filter(({ epoch }) => epoch !== now);
      const { dropped } = known;
      const wereDropped = dropped !== undefined && dropped.epoch !== now;
      if (now === undefined || (over.length === 0 && !wereDropped)) continue;
      const notRemembered = wereDropped ? dropped.spins : 0;
      // The chunks are removed before the look-up, so that a spin that is answered, or a commit, during the
      // look-up can't change the chunks.
      known.chunks = known.chunks.filter((chunk) => !over.includes(chunk));
      const spins = over.flatMap((chunk) => chunk.spins());
      const lost = await store.answered
        .recordLost({ cell, epoch: now, spins, notRemembered })
        .catch((error: unknown) => {
          known.chunks.unshift(...over);
          throw error;
        });
      for (const chunk of over) this.#free(chunk);
      if (known.dropped === dropped && wereDropped) known.dropped = undefined;
      if (lost + notRemembered > 0)
        events.emit('SpinsLost', { cell, epoch: now, spins: lost, notRemembered });
    }
  }

  /** Returns the chunk of a cell into which the next spin of the given epoch is written. */
  #open(cell: number, epoch: string): AnsweredChunk {
    const known = this.#cell(cell);
    const last = known.chunks.at(-1);
    if (last !== undefined && last.epoch === epoch && last.hasRoom) return last;
    if (this.#chunks >= CHUNKS_MAX) this.#dropOldest();
    const chunk = this.#spare.pop() ?? new AnsweredChunk();
    chunk.begin(epoch);
    known.chunks.push(chunk);
    this.#chunks++;
    return chunk;
  }

  #forget(known: Cell, isOver: (chunk: AnsweredChunk) => boolean): void {
    const kept: AnsweredChunk[] = [];
    for (const chunk of known.chunks) {
      if (isOver(chunk)) this.#free(chunk);
      else kept.push(chunk);
    }
    known.chunks = kept;
  }

  #free(chunk: AnsweredChunk): void {
    this.#chunks--;
    if (this.#spare.length < SPARE_MAX) this.#spare.push(chunk);
  }

  /** Drops the oldest chunk of the cell that has the most chunks. */
  #dropOldest(): void {
    let fullest: Cell | undefined;
    for (const cell of this.#cells.values())
      if (fullest === undefined || cell.chunks.length > fullest.chunks.length) fullest = cell;
    const oldest = fullest?.chunks[0];
    if (fullest === undefined || oldest === undefined) return;
    const { epoch, newestId, count } = oldest;
    const before = fullest.dropped?.epoch === epoch ? fullest.dropped.spins : 0;
    fullest.dropped = { epoch, newestId, spins: before + count };
    this.#forget(fullest, (chunk) => chunk === oldest);
  }

  #cell(cell: number): Cell {
    let known = this.#cells.get(cell);
    if (known === undefined) {
      known = { chunks: [], dropped: undefined };
      this.#cells.set(cell, known);
    }
    return known;
  }
}
