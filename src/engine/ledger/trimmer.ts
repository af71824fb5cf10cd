/**
 * Trims the outboxes of one node's cells of what is committed, and nothing else, and notes in Redis how far that is. What fails
 * comes again with the next time.
 */
import type { OnFailpoint } from '../../platform/failpoints.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { OwnedCell } from './portion.js';

/**
 * While somebody waits for what is booked, flushes follow each other within milliseconds. They share a trim: Redis syncs each,
 * and spins wait for that.
 */
export const TRIM_EVERY_MS = 25;

export interface TrimmerOptions {
  readonly nodes: Pick<RedisNodes, 'pipelined'>;
  readonly onFailpoint: OnFailpoint;
  readonly onFailed: (owned: OwnedCell, error: unknown) => void;
}

export class Trimmer {
  readonly #options: TrimmerOptions;
  #running: Promise<void> = Promise.resolve();
  #begunAt = Number.NEGATIVE_INFINITY;

  constructor(options: TrimmerOptions) {
    this.#options = options;
  }

  /** The trim that is under way, if one is. It never rejects. */
  get underWay(): Promise<void> {
    return this.#running;
  }

  /** @param isAwaited somebody waits for what is booked: not each flush is followed by a trim */
  isDue(isAwaited: boolean): boolean {
    return !isAwaited || performance.now() - this.#begunAt >= TRIM_EVERY_MS;
  }

  /** Trims those of the cells that are not, after the trim that is under way. It never rejects. */
  trim(cells: readonly OwnedCell[]): Promise<void> {
    this.#begunAt = performance.now();
    this.#running = this.#running.then(async () => {
      const due = cells.filter(({ untrimmed }) => untrimmed !== undefined);
      if (due.length > 0) await this.#together(due, (owned) => this.#trimCell(owned));
    });
    return this.#running;
  }

  async #trimCell(owned: OwnedCell): Promise<void> {
    const { lease, store, cursor, untrimmed } = owned;
    if (untrimmed === undefined) return;
    const { onFailpoint, onFailed } = this.#options;
    try {
      const totals = untrimmed === true ? await store.totalsAt(cursor) : untrimmed;
      // The trim first: a Redis without memory takes nothing else until something is gone. In one write: it syncs once.
      await this.#together(
        [
          () => store.trimOutbox(cursor).then(() => onFailpoint('flush.trimmed')),
          () => store.markBooked({ fence: lease.fence }, { id: cursor, totals }),
        ],
        (run) => run(),
      );
      onFailpoint('flush.marked');
      if (owned.untrimmed === untrimmed) owned.untrimmed = undefined;
    } catch (error) {
      onFailed(owned, error);
    }
  }

  /** What is asked of Redis for several cells goes in one write. */
  #together<Of, Result>(all: readonly Of[], run: (each: Of) => Promise<Result>): Promise<Result[]> {
    const running: Promise<Result>[] = [];
    this.#options.nodes.pipelined(() => {
      for (const each of all) running.push(run(each));
    });
    return Promise.all(running);
  }
}
