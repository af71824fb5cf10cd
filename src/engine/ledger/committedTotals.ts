/**
 * Keeps, for each game in the cells that this worker owns, the number of spins and the sums wagered and paid
 * since its registration. The metrics show them.
 *
 * The totals of a cell are read from Postgres at the first request after the cell is taken over. From that
 * time on, each flush adds its part. If a flush does not begin where the totals end, because an earlier
 * commit was reported as failed, the totals are read again.
 */

import type { CellTotals, GameTotals } from '../catalog/games.store.js';
import type { CommittedGameTotals } from '../processEvents.js';

export interface CommittedFlush {
  readonly cell: number;
  readonly from: bigint;
  readonly to: bigint;
  readonly games: readonly CommittedGameTotals[];
}

interface Known {
  cursor: bigint;
  readonly games: Map<number, GameTotals>;
  readonly sum: Omit<GameTotals, 'gameId'>;
}

export class CommittedTotals {
  readonly #cells = new Map<number, Known>();
  /** Flushes that were committed while the totals were being read, by cell. */
  #meanwhile: Map<number, CommittedFlush[]> | undefined;
  #reading: Promise<void> | undefined;

  constructor(private readonly read: (cells: readonly number[]) => Promise<CellTotals[]>) {}

  booked(flush: CommittedFlush): void {
    const known = this.#cells.get(flush.cell);
    if (known === undefined) this.#meanwhile?.get(flush.cell)?.push(flush);
    else if (known.cursor === flush.from) add(known, flush);
    else this.forget(flush.cell);
  }

  /** Drops the totals of a cell that this worker no longer owns. */
  forget(cell: number): void {
    this.#cells.delete(cell);
    this.#meanwhile?.delete(cell);
  }

  /**
   * Returns the totals of cells and of their games, as far as Postgres has them. Rejects if Postgres does not
   * respond.
   */
  async of(cells: readonly number[]): Promise<ReadonlyMap<number, Known>> {
    const isUnknown = (cell: number): boolean => !this.#cells.has(cell);
    if (cells.some(isUnknown)) {
      this.#reading ??= this.#learn(cells.filter(isUnknown)).finally(() => {
        this.#reading = undefined;
        this.#meanwhile = undefined;
      });
      await this.#reading;
    }
    return this.#cells;
  }

  async #learn(cells: readonly number[]): Promise<void> {
    const meanwhile = new Map(cells.map((cell): [number, CommittedFlush[]] => [cell, []]));
    this.#meanwhile = meanwhile;
    for (const { cell, cursor, games } of await this.read(cells)) {
      const flushes = meanwhile.get(cell);
      // The worker lost the cell while the totals were being read.
      if (flushes === undefined) continue;
      const known: Known = {
        cursor,
        games: new Map(),
        sum: { spins: 0n, wageredMicros: 0n, paidMicros: 0n },
      };
      add(known, { cell, from: cursor, to: cursor, games });
      this.#cells.set(cell, known);
      for (const flush of flushes) if (flush.to > cursor) this.booked(flush);
    }
  }
}

function add(known: Known, { to, games }: CommittedFlush): void {
  known.cursor = to;
  for (const { gameId, spins, wageredMicros, paidMicros } of games) {
    let game = known.games.get(gameId);
    if (game === undefined) {
      game = { gameId, spins: 0n, wageredMicros: 0n, paidMicros: 0n };
      known.games.set(gameId, game);
    }
    for (const sum of [game, known.sum]) {
      sum.spins += BigInt(spins);
      sum.wageredMicros += wageredMicros;
      sum.paidMicros += paidMicros;
    }
  }
}
