/**
 * Writes down in Postgres what this process has answered and the ledger does not have yet: the newest entry of each cell, every second, at a
 * stop, and at once where a cell lacks it. Should Redis come back with an older copy, its owner knows it also when every front end was
 * started again since (recovery/handshake.ts).
 */
import type { EventEmitter } from '../events.js';
import type { AnsweredEntry } from '../postgres/answeredEntries.js';
import type { Store } from '../postgres/store.js';
import { PeriodicService } from '../runtime/periodicService.js';
import { withTimeout } from '../runtime/withTimeout.js';
import type { AnsweredIds } from './answeredIds.js';

const TURN_MS = 1000;
const STOPPED_WITHIN_MS = 2000;

export interface AnsweredMarksOptions {
  readonly answered: AnsweredIds;
  readonly store: Pick<Store, 'noteAnswered'>;
  readonly events: EventEmitter;
}

interface Known {
  readonly epoch: bigint;
  readonly entryId: bigint;
}

export class AnsweredMarks extends PeriodicService {
  readonly name = 'answered entries';
  readonly #options: AnsweredMarksOptions;
  /** By cell: up to where the ledger has it or it is written down. */
  readonly #known = new Map<number, Known>();
  readonly #lacking = new Set<number>();

  constructor(options: AnsweredMarksOptions) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#options = options;
  }

  /** Once more after the last answer. */
  override async stop(): Promise<void> {
    await super.stop();
    await withTimeout(this.turn(), STOPPED_WITHIN_MS).catch((error: unknown) => this.onTurnFailed(error));
  }

  /** A call was refused: the cell has not what was answered. */
  lacks(cell: number): void {
    if (this.#lacking.has(cell)) return;
    this.#lacking.add(cell);
    this.hurry();
  }

  /** The ledger has every entry of the cell up to the cursor. */
  booked(cell: number, epoch: string, cursor: bigint): void {
    this.#learn(cell, { epoch: numberOf(epoch), entryId: cursor });
  }

  protected async turn(): Promise<void> {
    const entries: AnsweredEntry[] = [];
    for (const { cell, epoch: token, id: entryId } of this.#options.answered.all()) {
      const epoch = numberOf(token);
      const known = this.#known.get(cell);
      const isLacking = this.#lacking.has(cell);
      if (!isLacking && known?.epoch === epoch && known.entryId >= entryId) continue;
      entries.push({ cell, epoch, entryId, isLacking });
    }
    if (entries.length === 0) return;
    await this.#options.store.noteAnswered(entries);
    for (const { cell, isLacking, ...known } of entries) {
      this.#learn(cell, known);
      if (isLacking) this.#lacking.delete(cell);
    }
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'answered entries', error });
  }

  #learn(cell: number, { epoch, entryId }: Known): void {
    const known = this.#known.get(cell);
    if (known === undefined || epoch > known.epoch || (epoch === known.epoch && entryId > known.entryId))
      this.#known.set(cell, { epoch, entryId });
  }
}

/** Of an epoch, `<dataset>:<number>`. */
const numberOf = (epoch: string): bigint => BigInt(epoch.split(':')[1] ?? 0);
