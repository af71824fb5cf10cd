/**
 * Decides which cells this worker owns.
 *
 *   free ──leased──> preparing (Redis is completed from the ledger) ──> written ──┐
 *     ^                  │ refused, or a store failed                             │ released, or changed
 *     └──────────────────┴────────────────────────────────────────────────────────┘ in Redis since then
 *
 * One loop renews the leases, takes free cells, and checks whether Redis still has each cell as it was
 * prepared. The active workers divide the cells equally: each takes its share, to within one cell, and
 * releases the cells beyond its share. A cell that stays free for a while may be taken by any worker, because
 * the worker whose share it belongs to may be unable to prepare it.
 *
 * Preparing a cell may take long (a rebuild); its lease is renewed meanwhile. If it fails repeatedly, the
 * back-off grows each time, so that a rebuild that can't succeed leaves few epochs and audit entries behind.
 */
import { randomUUID } from 'node:crypto';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { TimeoutError, withTimeout } from '../../platform/runtime/withTimeout.js';
import type { Sql } from '../../postgres/connection.js';
import {
  acquireCells,
  type CellLease,
  type Division,
  leave,
  releaseCell,
  renewAndDivide,
  renewCells,
} from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import type { Obstacles } from '../recovery/obstacles.store.js';

/**
 * Duration of a lease, in ms. The cells of a worker that stops are taken over after at most this time plus
 * one turn of the ownership loop.
 */
const LEASE_MS = 3000;
const TURN_MS = 750;
const PREPARED_WITHIN_MS = 3000;
/**
 * Back-off after the second consecutive failure to prepare a cell, in ms. The back-off doubles with each
 * further failure.
 */
const BACKOFF_MIN_MS = 1000;
const BACKOFF_MAX_MS = 60_000;
/**
 * A cell that has been free for UNCLAIMED_MS is taken by any worker, even beyond its share. The worker then
 * keeps the cell for at least KEPT_MS.
 */
const UNCLAIMED_MS = 4000;
const KEPT_MS = 60_000;

interface Held {
  readonly lease: CellLease;
  isReady: boolean;
}

export class Ownership extends PeriodicService {
  readonly name = 'ownership';
  readonly owner = randomUUID();
  readonly #held = new Map<number, Held>();
  readonly #preparing = new Set<Promise<void>>();
  /**
   * Cells whose preparation failed: number of consecutive failures, and time of the next attempt, on the
   * scale of performance.now().
   */
  readonly #failed = new Map<number, { times: number; notBefore: number }>();
  #unableSince: number | undefined;
  /** Time since which there are cells that no worker takes. */
  #unclaimedSince: number | undefined;
  /** Time until which this worker releases no cells beyond its share. */
  #keepsUntil = 0;

  constructor(
    private readonly sql: Sql,
    private readonly options: {
      /** Prepares a leased cell and returns its lease, which the preparation may have changed. */
      readonly prepare: (lease: CellLease) => Promise<CellLease>;
      /**
       * Returns a reason if an error of `prepare` needs a decision by an operator. If the result is
       * undefined, the preparation is repeated until it succeeds.
       */
      readonly refusal: (error: unknown) => string | undefined;
      /**
       * Returns whether an error of `prepare` was harmless and has already been reported, so that the
       * preparation is repeated at the next turn.
       */
      readonly isPassing: (error: unknown) => boolean;
      readonly events: EventEmitter;
      /** Returns whether this process can write cells now, because Redis is reachable. */
      readonly isAble: () => boolean;
      /** Returns the cells whose data in Redis has changed since they were prepared. */
      readonly changed: (leases: readonly CellLease[], obstacles: Obstacles) => Promise<readonly number[]>;
    },
  ) {
    super({ everyMs: TURN_MS });
  }

  /**
   * Takes free cells and prepares them in the background. Cells that take long to prepare may not be ready
   * when the promise resolves.
   */
  override async start(): Promise<void> {
    await this.takeTurn();
    await super.start();
    await this.#prepared();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#prepared();
    await leave(this.sql, this.owner).catch(this.#report);
  }

  get cells(): readonly number[] {
    return this.leases.map(({ cell }) => cell);
  }

  get leases(): readonly CellLease[] {
    return [...this.#held.values()].filter(({ isReady }) => isReady).map(({ lease }) => lease);
  }

  /**
   * Releases a cell that its flusher has stopped writing. This worker or another one takes the cell again.
   */
  abandon(cell: number): void {
    const held = this.#held.get(cell);
    if (held !== undefined) void this.#release(held);
  }

  /** Starts the next turn of the loop at once, because Redis may have been replaced by another server. */
  lookNow(): void {
    this.#failed.clear();
    this.hurry();
  }

  /**
   * Waits for the preparations under way, up to a timeout. A preparation that is not finished by then is
   * begun anew by the cell's next owner.
   */
  async #prepared(): Promise<void> {
    await withTimeout(Promise.all(this.#preparing), PREPARED_WITHIN_MS).catch((error: unknown) => {
      if (!(error instanceof TimeoutError)) throw error;
    });
  }

  protected async turn(): Promise<void> {
    const { kept, division, obstacles } = await this.#renew();
    for (const held of [...this.#held.values()]) if (!kept.includes(held.lease.cell)) this.#drop(held);
    await this.#look(obstacles);
    if (this.isStopped || division === undefined || !this.options.isAble()) return;
    const share = shareOf(division);
    await this.#giveBack(this.#held.size - share);
    const resting = [...this.#failed].flatMap(([cell, { notBefore }]) =>
      notBefore > performance.now() ? [cell] : [],
    );
    const cellsMax = this.#room(share, division.free - resting.length);
    if (cellsMax === 0) return;
    for (const lease of await acquireCells(this.sql, this.owner, LEASE_MS, cellsMax, resting)) {
      // This worker owned the cell until the lease expired, so the worker's state of the cell is no longer
      // valid.
      const before = this.#held.get(lease.cell);
      if (before !== undefined) this.#drop(before);
      const held: Held = { lease, isReady: false };
      this.#held.set(lease.cell, held);
      const work = this.#prepare(held).finally(() => this.#preparing.delete(work));
      this.#preparing.add(work);
    }
  }

  /**
   * Renews the leases. A worker that can write no cell does not take part in the division of cells; in this
   * case the result has neither `division` nor `obstacles`.
   */
  async #renew(): Promise<{
    readonly kept: readonly number[];
    readonly division?: Division;
    readonly obstacles?: Obstacles;
  }> {
    const held = [...this.#held.keys()];
    if (!this.options.isAble()) return { kept: await renewCells(this.sql, this.owner, held, LEASE_MS) };
    return renewAndDivide(this.sql, this.owner, held, LEASE_MS);
  }

  /**
   * Releases cells because another worker has fewer than its share. Cells being prepared are kept, because
   * preparation may take long.
   */
  async #giveBack(surplus: number): Promise<void> {
    if (surplus <= 0 || performance.now() < this.#keepsUntil) return;
    const ready = [...this.#held.values()].filter(({ isReady }) => isReady);
    await Promise.all(ready.slice(-surplus).map((held) => this.#release(held)));
  }

  /**
   * Returns how many cells may be taken now.
   * @param free cells without an owner, except the cells for which this worker has a back-off
   */
  #room(share: number, free: number): number {
    const room = share - this.#held.size;
    if (room > 0 || free <= 0) {
      this.#unclaimedSince = undefined;
      return Math.max(0, room);
    }
    const now = performance.now();
    this.#unclaimedSince ??= now;
    if (now - this.#unclaimedSince < UNCLAIMED_MS) return 0;
    this.#keepsUntil = now + KEPT_MS;
    return free;
  }

  protected override onTurnFailed(error: unknown): void {
    this.#report(error);
  }

  readonly #report = (error: unknown): void =>
    this.options.events.emit('TaskFailed', { task: 'cell lease renewal', error });

  /**
   * Releases the cells that have changed in Redis.
   * @param obstacles undefined if this process could write no cell when the leases were renewed
   */
  async #look(obstacles: Obstacles | undefined): Promise<void> {
    const ready = [...this.#held.values()].filter(({ isReady }) => isReady);
    if (this.options.isAble()) this.#unableSince = undefined;
    else this.#unableSince ??= performance.now();
    if (this.#unableSince !== undefined) {
      // The cells are released if Redis stays unreachable for a while, because another worker may be able to
      // reach Redis.
      if (performance.now() - this.#unableSince > LEASE_MS) {
        await Promise.all(ready.map((held) => this.#release(held)));
      }
      return;
    }
    if (obstacles === undefined) return;
    const leases = ready.map(({ lease }) => lease);
    const changed = new Set(await this.options.changed(leases, obstacles));
    await Promise.all(
      ready.filter(({ lease }) => changed.has(lease.cell)).map((held) => this.#release(held)),
    );
  }

  async #prepare(held: Held): Promise<void> {
    try {
      const lease = await this.options.prepare(held.lease);
      if (this.#held.get(lease.cell) !== held) return;
      const ready: Held = { lease, isReady: true };
      this.#held.set(lease.cell, ready);
      this.#failed.delete(lease.cell);
      this.options.events.emit('CellAcquired', { lease });
    } catch (error) {
      const { cell } = held.lease;
      const reason = this.options.refusal(error);
      if (this.options.isPassing(error)) {
        this.#failed.delete(cell);
      } else if (reason === undefined) {
        this.#rest(cell);
        this.options.events.emit('TaskFailed', { task: 'cell preparation', error, cell });
      } else {
        this.options.events.emit('CellRefused', { cell, reason });
      }
      await this.#release(held);
    }
  }

  #rest(cell: number): void {
    const times = (this.#failed.get(cell)?.times ?? 0) + 1;
    // A cell whose preparation failed once is tried again at once, because most often a store was unreachable
    // only for a moment.
    const backoffMs = times === 1 ? 0 : Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (times - 2));
    this.#failed.set(cell, { times, notBefore: performance.now() + backoffMs });
  }

  #drop(held: Held): void {
    const { cell } = held.lease;
    if (this.#held.get(cell) !== held) return;
    this.#held.delete(cell);
    if (held.isReady) this.options.events.emit('CellLost', { cell });
  }

  /**
   * Releases a cell at once. If the release fails, the lease expires, because only the leases of held cells
   * are renewed.
   */
  async #release(held: Held): Promise<void> {
    this.#drop(held);
    await releaseCell(this.sql, held.lease).catch(this.#report);
  }
}

/** All workers have the same share; if a remainder is left, the workers that started first get one more. */
const shareOf = ({ cells, workers, earlier }: Division): number =>
  Math.floor(cells / workers) + (earlier < cells % workers ? 1 : 0);
