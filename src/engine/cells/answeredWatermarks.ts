/**
 * Records the answered watermark of each cell in Postgres: the newest entry that this process has answered
 * and the ledger does not have yet. The watermarks are written every second, at shutdown, and immediately
 * when a cell reports that Redis lacks the answered entry. While the ledger keeps up, nothing is written.
 *
 * The next owner of a cell compares the watermark with Redis (recovery/handshake.ts). An older copy of Redis
 * is thus recognized even after all front ends have restarted.
 */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { EngineStore } from '../engine.store.js';
import { type EventEmitter, taskFailed } from '../processEvents.js';
import type { AnsweredEntry } from './answered.store.js';
import type { AnsweredIds } from './answeredIds.js';

const TURN_MS = 1000;
const STOPPED_WITHIN_MS = 2000;

interface Known {
  readonly epoch: bigint;
  readonly entryId: bigint;
}

export class AnsweredWatermarks extends PeriodicService {
  readonly name = 'answered entries';
  /** By cell: the newest entry that is either committed or on record as the answered watermark. */
  readonly #known = new Map<number, Known>();
  /** By cell: the newest answered entry, as seen by the previous turn of this task. */
  readonly #before = new Map<number, Known>();
  readonly #lacking = new Set<number>();

  constructor(
    private readonly options: {
      readonly answered: AnsweredIds;
      readonly store: Pick<EngineStore, 'answered'>;
      readonly events: EventEmitter;
    },
  ) {
    super({ everyMs: TURN_MS }, taskFailed(options.events, 'answered entries'));
  }

  /**
   * Writes the watermarks once more, because entries may have been answered after the last turn of this task.
   */
  override async stop(): Promise<void> {
    await super.stop();
    await withTimeout(this.#write(this.#unknown(() => true)), STOPPED_WITHIN_MS).catch((error: unknown) =>
      this.onTurnFailed(error),
    );
  }

  /**
   * Notes that a cell has reported that Redis lacks the answered entry. The watermarks are then written at
   * once.
   */
  lacks(cell: number): void {
    if (this.#lacking.has(cell)) return;
    this.#lacking.add(cell);
    this.hurry();
  }

  /** Notes that the ledger has every entry of the cell up to the cursor. */
  booked(cell: number, epoch: string, cursor: bigint): void {
    this.#learn(cell, { epoch: numberOf(epoch), entryId: cursor });
  }

  protected async turn(): Promise<void> {
    const late = this.#unknown(({ cell }) => this.#lacking.has(cell) || this.#isBehind(cell));
    this.#before.clear();
    for (const { cell, epoch, id } of this.options.answered.all())
      this.#before.set(cell, { epoch: numberOf(epoch), entryId: id });
    await this.#write(late);
  }

  /** True if an entry that had been answered by the previous turn of this task is still not in the ledger. */
  #isBehind(cell: number): boolean {
    const before = this.#before.get(cell);
    return before !== undefined && !this.#isKnown(cell, before);
  }

  #isKnown(cell: number, { epoch, entryId }: Known): boolean {
    const known = this.#known.get(cell);
    return known?.epoch === epoch && known.entryId >= entryId;
  }

  /**
   * Returns, for each given cell, the newest answered entry if it is neither committed nor on record in
   * Postgres.
   */
  #unknown(isWanted: (entry: AnsweredEntry) => boolean): AnsweredEntry[] {
    const entries: AnsweredEntry[] = [];
    for (const { cell, epoch: token, id: entryId } of this.options.answered.all()) {
      const entry = { cell, epoch: numberOf(token), entryId, isLacking: this.#lacking.has(cell) };
      if ((entry.isLacking || !this.#isKnown(cell, entry)) && isWanted(entry)) entries.push(entry);
    }
    return entries;
  }

  async #write(entries: readonly AnsweredEntry[]): Promise<void> {
    if (entries.length === 0) return;
    await this.options.store.answered.note(entries);
    for (const { cell, isLacking, ...known } of entries) {
      this.#learn(cell, known);
      if (isLacking) this.#lacking.delete(cell);
    }
  }

  #learn(cell: number, { epoch, entryId }: Known): void {
    const known = this.#known.get(cell);
    if (known === undefined || epoch > known.epoch || (epoch === known.epoch && entryId > known.entryId))
      this.#known.set(cell, { epoch, entryId });
  }
}

/** Extracts the epoch's number from a token of the form `<dataset>:<number>`. */
const numberOf = (epoch: string): bigint => BigInt(epoch.split(':')[1] ?? 0);
