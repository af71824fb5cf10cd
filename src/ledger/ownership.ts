/**
 * Which cells this worker writes.
 *
 *   free ──leased──> preparing (Redis is made what the ledger knows) ──> written ──┐
 *     ^                  │ refused, or a store failed                              │ given up, or Redis is not what
 *     └──────────────────┴─────────────────────────────────────────────────────────┘ it was any more
 *
 * One loop renews the leases, takes what nobody holds, and looks whether Redis still has each cell as it was prepared.
 * Preparing may take long (a rebuild); its lease is renewed meanwhile.
 */
import { randomUUID } from 'node:crypto';
import { acquireCells, type CellLease, releaseCell, releaseCells, renewCells } from '../postgres/cells.js';
import type { Sql } from '../postgres/client.js';

export interface OwnershipOptions {
  /** Makes a leased cell ready; gives the lease as it is then. */
  readonly prepare: (lease: CellLease) => Promise<CellLease>;
  /** A cell is ready: it may be written. */
  readonly onAcquired: (lease: CellLease) => void;
  readonly onLost: (cell: number) => void;
  /** A cell could not be made ready; it is tried again at every turn. */
  readonly onRefused: (cell: number, error: unknown) => void;
  readonly onError: (error: unknown) => void;
  /** This process can write cells now: Redis is reached. */
  readonly isAble: () => boolean;
  /** Of the given cells, those that Redis does not have as they were prepared. */
  readonly changed: (leases: readonly CellLease[]) => Promise<readonly number[]>;
}

/** A worker that stops is taken over after this at the latest, plus one turn of the loop. */
const LEASE_MS = 3000;
const TURN_MS = 750;
const PREPARED_WITHIN_MS = 3000;

interface Held {
  readonly lease: CellLease;
  isReady: boolean;
}

export class Ownership {
  readonly owner = randomUUID();
  readonly #sql: Sql;
  readonly #options: OwnershipOptions;
  readonly #held = new Map<number, Held>();
  readonly #preparing = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();
  #stopped = false;
  #unableSince: number | undefined;

  constructor(sql: Sql, options: OwnershipOptions) {
    this.#sql = sql;
    this.#options = options;
  }

  /** Takes what is free, and goes on in the background; what takes long to prepare may not be ready yet. */
  async start(): Promise<void> {
    await this.#once();
    this.#schedule(TURN_MS);
    await this.#prepared();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#turn;
    await this.#prepared();
    await releaseCells(this.#sql, this.owner).catch(this.#options.onError);
  }

  /** The cells that this worker writes. */
  get cells(): readonly number[] {
    return [...this.#held.values()].filter(({ isReady }) => isReady).map(({ lease }) => lease.cell);
  }

  /** Lets a cell go that its writer has given up: it is taken anew, here or elsewhere. */
  giveUp(cell: number): void {
    const held = this.#held.get(cell);
    if (held !== undefined) void this.#release(held);
  }

  /** Redis may be another one than before: the next turn, which looks, comes at once. */
  lookNow(): void {
    this.#schedule(0);
  }

  /** Waits for what is being prepared, for a while: whoever comes next begins it anew. */
  async #prepared(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PREPARED_WITHIN_MS);
    });
    await Promise.race([Promise.all(this.#preparing), enough]);
    clearTimeout(timer);
  }

  #schedule(delayMs: number): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#turn = this.#turn.then(() => this.#once()).finally(() => this.#schedule(TURN_MS));
    }, delayMs);
  }

  async #once(): Promise<void> {
    try {
      const kept = new Set(await renewCells(this.#sql, this.owner, [...this.#held.keys()], LEASE_MS));
      for (const held of [...this.#held.values()]) if (!kept.has(held.lease.cell)) this.#drop(held);
      await this.#look();
      if (this.#stopped || !this.#options.isAble()) return;
      for (const lease of await acquireCells(this.#sql, this.owner, LEASE_MS)) {
        // Ours until its lease ended: what was known of it holds no more.
        const before = this.#held.get(lease.cell);
        if (before !== undefined) this.#drop(before);
        const held: Held = { lease, isReady: false };
        this.#held.set(lease.cell, held);
        const work = this.#prepare(held).finally(() => this.#preparing.delete(work));
        this.#preparing.add(work);
      }
    } catch (error) {
      this.#options.onError(error);
    }
  }

  async #look(): Promise<void> {
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
    const changed = new Set(await this.#options.changed(ready.map(({ lease }) => lease)));
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
      this.#options.onAcquired(lease);
    } catch (error) {
      this.#options.onRefused(held.lease.cell, error);
      await this.#release(held);
    }
  }

  #drop(held: Held): void {
    const { cell } = held.lease;
    if (this.#held.get(cell) !== held) return;
    this.#held.delete(cell);
    if (held.isReady) this.#options.onLost(cell);
  }

  /** Gives a cell back at once. Where that fails, the lease ends by itself: only cells that are held are prolonged. */
  async #release(held: Held): Promise<void> {
    this.#drop(held);
    await releaseCell(this.#sql, held.lease).catch(this.#options.onError);
  }
}
