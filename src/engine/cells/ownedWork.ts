/**
 * Base class of services that complete open work in the cells of this worker. If work on an item fails, it is
 * retried with exponential back-off.
 */

import { PeriodicService, WOKEN_MS } from '../../platform/runtime/periodicService.js';
import type { CellLease } from './cells.store.js';

interface OwnedWorkTimes {
  readonly turnMs: number;
  /**
   * Back-off after the first failure of an item, in ms. The back-off doubles with each further failure, up to
   * backoffMaxMs.
   */
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
}

export abstract class OwnedWork extends PeriodicService {
  protected readonly leases = new Map<number, CellLease>();
  readonly #times: OwnedWorkTimes;
  /**
   * By item of work: the number of consecutive failures, and the time of the next attempt on the scale of
   * performance.now().
   */
  readonly #failed = new Map<number, { times: number; notBefore: number }>();

  constructor(times: OwnedWorkTimes, onTurnFailed: (error: unknown) => void) {
    super({ everyMs: times.turnMs, idleMs: WOKEN_MS }, onTurnFailed);
    this.#times = times;
  }

  own(lease: CellLease): void {
    this.leases.set(lease.cell, lease);
  }

  disown(cell: number): void {
    this.leases.delete(cell);
  }

  wake(): void {
    this.hurry();
  }

  protected rests(item: number): boolean {
    return (this.#failed.get(item)?.notBefore ?? 0) > performance.now();
  }

  protected hasFailed(item: number): boolean {
    return this.#failed.has(item);
  }

  /** @returns the number of consecutive failures of the item */
  protected noteFailure(item: number): number {
    const times = (this.#failed.get(item)?.times ?? 0) + 1;
    const backoffMs = Math.min(this.#times.backoffMaxMs, this.#times.backoffMinMs * 2 ** (times - 1));
    this.#failed.set(item, { times, notBefore: performance.now() + backoffMs });
    return times;
  }

  protected forgetFailures(item: number): void {
    this.#failed.delete(item);
  }

  /** Forgets the failures of items that are no longer open. */
  protected keepFailuresOf(open: ReadonlySet<number>): void {
    for (const item of this.#failed.keys()) if (!open.has(item)) this.#failed.delete(item);
  }
}
