/** Work that is left to do in the cells that this worker owns, each item with a wait after it failed that doubles. */
import type { CellLease } from '../postgres/cells.js';
import { PeriodicService, WOKEN_MS } from '../runtime/periodicService.js';

interface OwnedWorkTimes {
  readonly turnMs: number;
  /** After an item failed; twice as long after each further failure in a row. */
  readonly restMinMs: number;
  readonly restMaxMs: number;
}

export abstract class OwnedWork extends PeriodicService {
  protected readonly leases = new Map<number, CellLease>();
  readonly #times: OwnedWorkTimes;
  /** By item: how often it failed in a row, and when it is tried again (performance.now()). */
  readonly #failed = new Map<number, { times: number; notBefore: number }>();

  constructor(times: OwnedWorkTimes) {
    super({ everyMs: times.turnMs, firstAfterMs: times.turnMs, idleMs: WOKEN_MS });
    this.#times = times;
  }

  own(lease: CellLease): void {
    this.leases.set(lease.cell, lease);
  }

  disown(cell: number): void {
    this.leases.delete(cell);
  }

  /** Looks for work now: there may be some. */
  wake(): void {
    this.hurry();
  }

  protected rests(item: number): boolean {
    return (this.#failed.get(item)?.notBefore ?? 0) > performance.now();
  }

  protected hasFailed(item: number): boolean {
    return this.#failed.has(item);
  }

  /** @returns how often the item failed in a row */
  protected noteFailure(item: number): number {
    const times = (this.#failed.get(item)?.times ?? 0) + 1;
    const restMs = Math.min(this.#times.restMaxMs, this.#times.restMinMs * 2 ** (times - 1));
    this.#failed.set(item, { times, notBefore: performance.now() + restMs });
    return times;
  }

  /** The item succeeded, or is given up. */
  protected forgetFailures(item: number): void {
    this.#failed.delete(item);
  }

  /** Forgets the failures of items that are no longer open. */
  protected keepFailuresOf(open: ReadonlySet<number>): void {
    for (const item of this.#failed.keys()) if (!open.has(item)) this.#failed.delete(item);
  }
}
