/**
 * Which cells this worker writes. One loop renews the leases it has and takes those that nobody holds; a cell is
 * prepared (its Redis is what the ledger expects) before it is handed on.
 */
import { randomUUID } from 'node:crypto';
import { acquireCells, type CellLease, releaseCell, releaseCells, renewCells } from '../postgres/cells.js';
import type { Sql } from '../postgres/client.js';
import { LostError } from './handshake.js';

export interface OwnershipOptions {
  /** Called once a cell is ours; it is written only after this resolves. */
  readonly onAcquired: (lease: CellLease) => Promise<void>;
  readonly onLost: (cell: number) => void;
  /** A cell may not be served as things are; it is tried again at every turn. */
  readonly onRefused: (cell: number, error: LostError) => void;
  readonly onError: (error: unknown) => void;
}

/** A worker that stops is taken over after this at the latest, plus one turn of the loop. */
const LEASE_MS = 3000;
const TURN_MS = 750;

export class Ownership {
  readonly owner = randomUUID();
  readonly #sql: Sql;
  readonly #options: OwnershipOptions;
  readonly #held = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();
  #stopped = false;
  #isToPrepare = false;

  constructor(sql: Sql, options: OwnershipOptions) {
    this.#sql = sql;
    this.#options = options;
  }

  /** Takes what is free, once, and goes on in the background. */
  async start(): Promise<void> {
    await this.#once();
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#turn;
    await releaseCells(this.#sql, this.owner).catch(this.#options.onError);
  }

  get cells(): readonly number[] {
    return [...this.#held];
  }

  /** Lets a cell go that its writer has given up: its lease ends, and it is taken anew, here or elsewhere. */
  giveUp(cell: number): void {
    if (this.#held.delete(cell)) this.#options.onLost(cell);
  }

  /** Redis may be another one than before: at the next turn every cell is given back, and prepared anew when taken. */
  prepareAgain(): void {
    this.#isToPrepare = true;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#turn = this.#once().finally(() => this.#schedule());
    }, TURN_MS);
  }

  async #once(): Promise<void> {
    try {
      if (this.#isToPrepare) {
        for (const cell of this.#held) this.#options.onLost(cell);
        this.#held.clear();
        await releaseCells(this.#sql, this.owner);
        this.#isToPrepare = false;
      }
      const kept = new Set(await renewCells(this.#sql, this.owner, this.cells, LEASE_MS));
      for (const cell of this.#held) {
        if (kept.has(cell)) continue;
        this.#held.delete(cell);
        this.#options.onLost(cell);
      }
      for (const lease of await acquireCells(this.#sql, this.owner, LEASE_MS)) await this.#take(lease);
    } catch (error) {
      this.#options.onError(error);
    }
  }
  /** A cell that can't be prepared is given back at once, to be taken again at a later turn. */
  async #take(lease: CellLease): Promise<void> {
    try {
      await this.#options.onAcquired(lease);
      this.#held.add(lease.cell);
    } catch (error) {
      if (error instanceof LostError) this.#options.onRefused(lease.cell, error);
      else this.#options.onError(error);
      // Where this fails, the lease ends by itself: only cells that are held are prolonged.
      await releaseCell(this.#sql, lease).catch(this.#options.onError);
    }
  }
}
