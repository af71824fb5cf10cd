/**
 * Trims committed entries from the outboxes of one node's cells, and notes in Redis how far the cells are
 * committed. A failed trim is repeated with the next one.
 */
import type { OnFailpoint } from '../../platform/failpoints.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { OwnedCell } from './portion.js';

/**
 * Minimum time between two trims while responses wait for commits, in ms. Flushes then follow each other
 * within milliseconds and share a trim, because Redis syncs each trim to disk and spins wait for that sync.
 */
export const TRIM_EVERY_MS = 25;

export class Trimmer {
  #running: Promise<void> = Promise.resolve();
  #begunAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly options: {
      readonly nodes: Pick<RedisNodes, 'pipelined'>;
      readonly onFailpoint: OnFailpoint;
      readonly onFailed: (owned: OwnedCell, error: unknown) => void;
    },
  ) {}

  /** The trim that is under way, if any. It never rejects. */
  get underWay(): Promise<void> {
    return this.#running;
  }

  /** @param isAwaited true if responses wait for commits; then only some flushes are followed by a trim */
  isDue(isAwaited: boolean): boolean {
    return !isAwaited || performance.now() - this.#begunAt >= TRIM_EVERY_MS;
  }

  /**
   * Trims those of the given cells that have committed entries in their outbox, after the trim that is under
   * way. The promise never rejects.
   */
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
    const { onFailpoint, onFailed } = this.options;
    try {
      const totals = untrimmed === true ? await store.totalsAt(cursor) : untrimmed;
      // The trim comes before the note, because a Redis that is out of memory accepts no other write until
      // entries are removed. Both commands are sent in one write, so Redis syncs its disk once.
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

  /** Runs Redis commands of several cells in one write. */
  #together<Of, Result>(all: readonly Of[], run: (each: Of) => Promise<Result>): Promise<Result[]> {
    const running: Promise<Result>[] = [];
    this.options.nodes.pipelined(() => {
      for (const each of all) running.push(run(each));
    });
    return Promise.all(running);
  }
}
