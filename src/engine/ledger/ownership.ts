/**
 * Which cells this worker writes.
 *
 *   free ──leased──> preparing (Redis is made what the ledger knows) ──> written ──┐
 *     ^                  │ refused, or a store failed                              │ given up, or Redis is not what
 *     └──────────────────┴─────────────────────────────────────────────────────────┘ it was any more
 *
 * One loop renews the leases, takes what nobody holds, and looks whether Redis still has each cell as it was prepared. The
 * workers that are there share the cells: each takes its share, to within one cell, and gives back what is beyond it.
 * What nobody takes for a while is taken by whoever can: the worker whose share it is may be unable to prepare it.
 * Preparing may take long (a rebuild); its lease is renewed meanwhile. Where it fails again and again it rests for longer each
 * time, so that a rebuild that can't succeed leaves few epochs and audit entries behind.
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

export interface OwnershipOptions {
  /** Makes a leased cell ready; gives the lease as it is then. */
  readonly prepare: (lease: CellLease) => Promise<CellLease>;
  /** Why an error of `prepare` means that people must decide; undefined: it is tried again until it succeeds. */
  readonly refusal: (error: unknown) => string | undefined;
  /** An error of `prepare` that cost nothing and is announced already: the cell is tried again at the next turn. */
  readonly isPassing: (error: unknown) => boolean;
  readonly events: EventEmitter;
  /** This process can write cells now: Redis is reached. */
  readonly isAble: () => boolean;
  /** Of the given cells, those that Redis does not have as they were prepared. */
  readonly changed: (leases: readonly CellLease[], obstacles: Obstacles) => Promise<readonly number[]>;
}

/** A worker that stops is taken over after this at the latest, plus one turn of the loop. */
const LEASE_MS = 3000;
const TURN_MS = 750;
const PREPARED_WITHIN_MS = 3000;
/** After the second preparation of a cell that failed in a row; twice as long after each further one. */
const BACKOFF_MIN_MS = 1000;
const BACKOFF_MAX_MS = 60_000;
/** A cell that is free for so long is taken beyond the share, and is kept for so long. */
const UNCLAIMED_MS = 4000;
const KEPT_MS = 60_000;

interface Held {
  readonly lease: CellLease;
  isReady: boolean;
}

export class Ownership extends PeriodicService {
  readonly name = 'ownership';
  readonly owner = randomUUID();
  readonly #sql: Sql;
  readonly #options: OwnershipOptions;
  readonly #held = new Map<number, Held>();
  readonly #preparing = new Set<Promise<void>>();
  /** Cells whose preparation failed: how often in a row, and when it is tried again (performance.now()). */
  readonly #failed = new Map<number, { times: number; notBefore: number }>();
  #unableSince: number | undefined;
  /** Since when there are cells that nobody takes. */
  #unclaimedSince: number | undefined;
  /** Until when nothing is given back. */
  #keepsUntil = 0;

  constructor(sql: Sql, options: OwnershipOptions) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#sql = sql;
    this.#options = options;
  }

  /** Takes what is free, and goes on in the background; what takes long to prepare may not be ready yet. */
  override async start(): Promise<void> {
    await this.takeTurn();
    await super.start();
    await this.#prepared();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#prepared();
    await leave(this.#sql, this.owner).catch(this.#report);
  }

  /** The cells that this worker writes. */
  get cells(): readonly number[] {
    return this.leases.map(({ cell }) => cell);
  }

  /** Those of the cells that this worker writes. */
  get leases(): readonly CellLease[] {
    return [...this.#held.values()].filter(({ isReady }) => isReady).map(({ lease }) => lease);
  }

  /** Lets a cell go that its writer has given up: it is taken anew, here or elsewhere. */
  abandon(cell: number): void {
    const held = this.#held.get(cell);
    if (held !== undefined) void this.#release(held);
  }

  /** Redis may be another one than before: the next turn, which looks, comes at once. */
  lookNow(): void {
    this.#failed.clear();
    this.hurry();
  }

  /** Waits for what is being prepared, for a while: whoever comes next begins it anew. */
  async #prepared(): Promise<void> {
    await withTimeout(Promise.all(this.#preparing), PREPARED_WITHIN_MS).catch((error: unknown) => {
      if (!(error instanceof TimeoutError)) throw error;
    });
  }

  protected async turn(): Promise<void> {
    const { kept, division, obstacles } = await this.#renew();
    for (const held of [...this.#held.values()]) if (!kept.includes(held.lease.cell)) this.#drop(held);
    await this.#look(obstacles);
    if (this.isStopped || division === undefined || !this.#options.isAble()) return;
    const share = shareOf(division);
    await this.#giveBack(this.#held.size - share);
    const resting = [...this.#failed].flatMap(([cell, { notBefore }]) =>
      notBefore > performance.now() ? [cell] : [],
    );
    const cellsMax = this.#room(share, division.free - resting.length);
    if (cellsMax === 0) return;
    for (const lease of await acquireCells(this.#sql, this.owner, LEASE_MS, cellsMax, resting)) {
      // Ours until its lease ended: what was known of it holds no more.
      const before = this.#held.get(lease.cell);
      if (before !== undefined) this.#drop(before);
      const held: Held = { lease, isReady: false };
      this.#held.set(lease.cell, held);
      const work = this.#prepare(held).finally(() => this.#preparing.delete(work));
      this.#preparing.add(work);
    }
  }

  /** Prolongs what is held. A worker that can write no cell is none of those that divide them: no `division` then, and no `obstacles`. */
  async #renew(): Promise<{
    readonly kept: readonly number[];
    readonly division?: Division;
    readonly obstacles?: Obstacles;
  }> {
    const held = [...this.#held.keys()];
    if (!this.#options.isAble()) return { kept: await renewCells(this.#sql, this.owner, held, LEASE_MS) };
    return renewAndDivide(this.#sql, this.owner, held, LEASE_MS);
  }

  /** Another worker has fewer than its share. What is being prepared is kept: that may take long. */
  async #giveBack(surplus: number): Promise<void> {
    if (surplus <= 0 || performance.now() < this.#keepsUntil) return;
    const ready = [...this.#held.values()].filter(({ isReady }) => isReady);
    await Promise.all(ready.slice(-surplus).map((held) => this.#release(held)));
  }

  /** How many cells may be taken now. @param free cells that nobody holds, without those that rest here */
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

  protected onTurnFailed(error: unknown): void {
    this.#report(error);
  }

  readonly #report = (error: unknown): void =>
    this.#options.events.emit('TaskFailed', { task: 'cell lease renewal', error });

  /** @param obstacles undefined: this process could write no cell when they were asked for */
  async #look(obstacles: Obstacles | undefined): Promise<void> {
    const ready = [...this.#held.values()].filter(({ isReady }) => isReady);
    if (this.#options.isAble()) this.#unableSince = undefined;
    else this.#unableSince ??= performance.now();
    if (this.#unableSince !== undefined) {
      // Another worker may be better off.
      if (performance.now() - this.#unableSince > LEASE_MS) {
        await Promise.all(ready.map((held) => this.#release(held)));
      }
      return;
    }
    if (obstacles === undefined) return;
    const leases = ready.map(({ lease }) => lease);
    const changed = new Set(await this.#options.changed(leases, obstacles));
    await Promise.all(
      ready.filter(({ lease }) => changed.has(lease.cell)).map((held) => this.#release(held)),
    );
  }

  async #prepare(held: Held): Promise<void> {
    try {
      const lease = await this.#options.prepare(held.lease);
      if (this.#held.get(lease.cell) !== held) return;
      const ready: Held = { lease, isReady: true };
      this.#held.set(lease.cell, ready);
      this.#failed.delete(lease.cell);
      this.#options.events.emit('CellAcquired', { lease });
    } catch (error) {
      const { cell } = held.lease;
      const reason = this.#options.refusal(error);
      if (this.#options.isPassing(error)) {
        this.#failed.delete(cell);
      } else if (reason === undefined) {
        this.#rest(cell);
        this.#options.events.emit('TaskFailed', { task: 'cell preparation', error, cell });
      } else {
        this.#options.events.emit('CellRefused', { cell, reason });
      }
      await this.#release(held);
    }
  }

  #rest(cell: number): void {
    const times = (this.#failed.get(cell)?.times ?? 0) + 1;
    // One that failed once is tried again at once: most often a store was away for a moment.
    const backoffMs = times === 1 ? 0 : Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (times - 2));
    this.#failed.set(cell, { times, notBefore: performance.now() + backoffMs });
  }

  #drop(held: Held): void {
    const { cell } = held.lease;
    if (this.#held.get(cell) !== held) return;
    this.#held.delete(cell);
    if (held.isReady) this.#options.events.emit('CellLost', { cell });
  }

  /** Gives a cell back at once. Where that fails, the lease ends by itself: only cells that are held are prolonged. */
  async #release(held: Held): Promise<void> {
    this.#drop(held);
    await releaseCell(this.#sql, held.lease).catch(this.#report);
  }
}

/** Cells of this worker: all have the same number, the earliest one more where they can't be divided. */
const shareOf = ({ cells, workers, earlier }: Division): number =>
  Math.floor(cells / workers) + (earlier < cells % workers ? 1 : 0);
