/**
 * How much each game has been spun, and paid, since it was registered: for the metrics of the cells that this worker writes.
 *
 * Read from Postgres once a cell is taken over, when somebody first asks; from then on each flush adds what it booked. A
 * flush that does not begin where the totals end (its commit was not known to be one) has them read again.
 */

import type { CellTotals, GameTotals } from '../catalog/games.store.js';
import type { CommittedGameTotals } from '../processEvents.js';

/** A flush: what it booked, from one cursor to the next. */
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
  readonly #read: (cells: readonly number[]) => Promise<CellTotals[]>;
  readonly #cells = new Map<number, Known>();
  /** What is booked while totals are read, by cell. */
  #meanwhile: Map<number, CommittedFlush[]> | undefined;
  #reading: Promise<void> | undefined;

  constructor(read: (cells: readonly number[]) => Promise<CellTotals[]>) {
    this.#read = read;
  }

  booked(flush: CommittedFlush): void {
    const known = this.#cells.get(flush.cell);
    if (known === undefined) this.#meanwhile?.get(flush.cell)?.push(flush);
    else if (known.cursor === flush.from) add(known, flush);
    else this.forget(flush.cell);
  }

  /** The cell is not written by this worker any more. */
  forget(cell: number): void {
    this.#cells.delete(cell);
    this.#meanwhile?.delete(cell);
  }

  /** Of these cells, as far as Postgres tells: the sums of each, and the totals of its games. Rejects where it does not answer. */
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
    for (const { cell, cursor, games } of await this.#read(cells)) {
      const flushes = meanwhile.get(cell);
      // Given up meanwhile.
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
