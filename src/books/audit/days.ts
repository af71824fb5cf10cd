/** The ledger's sums by day against the tables of them: of games, forced spins, openings and adjustments. */
import type { Facts } from './auditReads.store.js';
import type { AuditedGameDay } from './gameAuditReads.store.js';
import type { Findings, Place } from './report.js';
import { Sum } from './tables.js';

/** A row of a table. */
interface BookedDay {
  /** Of the game or the partner. */
  readonly id: number;
  readonly partnerId: number;
  readonly day: string;
  readonly count: bigint;
  readonly wageredMicros: bigint;
  readonly creditedMicros: bigint;
}

interface DaySum {
  readonly partnerId: number;
  count: number;
  readonly wagered: Sum;
  readonly credited: Sum;
}

/** How a table names what it has. */
interface DayShape {
  readonly table: string;
  /** Its rows are of games; otherwise of partners. */
  readonly isOfGames: boolean;
  readonly countColumn: string;
  readonly counted: string;
  readonly creditedColumn: string;
}

/** One table, and the sums of the day that the pass has come to. */
class DayTable {
  readonly #shape: DayShape;
  readonly #findings: Findings;
  /** Rows that the pass has not come to. */
  readonly #booked: Map<string, BookedDay>;
  readonly #sums = new Map<number, DaySum>();
  readonly rows: number;
  /** What all rows together say that players got, less what they wagered, micro-USD. */
  readonly netMicros: bigint;

  constructor(shape: DayShape, rows: readonly BookedDay[], findings: Findings) {
    this.#shape = shape;
    this.#findings = findings;
    this.#booked = new Map(rows.map((row) => [`${row.id}/${row.day}`, row]));
    this.rows = rows.length;
    this.netMicros = rows.reduce((sum, row) => sum + row.creditedMicros - row.wageredMicros, 0n);
  }

  /** Adds an entry of the ledger to the day. */
  add(id: number, partnerId: number, wager: number, credit: number, count = 1): void {
    const sum = this.#sumOf(id, partnerId);
    sum.count += count;
    sum.wagered.add(wager);
    sum.credited.add(credit);
  }

  /** Adds what the archive of a dropped day says of it. */
  addTotal(id: number, partnerId: number, count: number, wagered: bigint, credited: bigint): void {
    const sum = this.#sumOf(id, partnerId);
    sum.count += count;
    sum.wagered.addExact(wagered);
    sum.credited.addExact(credited);
  }

  #sumOf(id: number, partnerId: number): DaySum {
    let sum = this.#sums.get(id);
    if (sum === undefined) {
      sum = { partnerId, count: 0, wagered: new Sum(), credited: new Sum() };
      this.#sums.set(id, sum);
    }
    return sum;
  }

  /** Compares the sums of a day with its rows. */
  close(day: string): void {
    const { table, isOfGames, countColumn, counted, creditedColumn } = this.#shape;
    for (const [id, sum] of this.#sums) {
      const key = `${id}/${day}`;
      const booked = this.#booked.get(key);
      this.#booked.delete(key);
      const at = this.#place(id, sum.partnerId, day);
      const differ = (column: string, rule: string, expected: bigint, found: bigint | undefined): void => {
        if (found !== expected)
          this.#findings.found(
            'double-entry',
            `${table}.${column} is not ${rule}`,
            at,
            expected,
            found ?? 'no row',
          );
      };
      differ(countColumn, `the number of ${counted} in the ledger`, BigInt(sum.count), booked?.count);
      if (booked === undefined) continue;
      const isSum = 'their sum in the ledger';
      differ(creditedColumn, isSum, sum.credited.value, booked.creditedMicros);
      if (!isOfGames) continue;
      differ('wagered_micros', isSum, sum.wagered.value, booked.wageredMicros);
      differ('partner_id', "the entries'", BigInt(sum.partnerId), BigInt(booked.partnerId));
    }
    this.#sums.clear();
  }

  /** Every row has been come to. */
  finish(): void {
    const problem = `${this.#shape.table} has a day that the ledger has not`;
    for (const { id, partnerId, day, count } of this.#booked.values())
      this.#findings.found('double-entry', problem, this.#place(id, partnerId, day), 0, count);
  }

  #place(id: number, partner: number, day: string): Place {
    return this.#shape.isOfGames ? { game: id, partner, day } : { partner, day };
  }
}

const gameRow = ({
  gameId,
  partnerId,
  day,
  spins,
  wageredMicros,
  paidMicros,
}: AuditedGameDay): BookedDay => ({
  id: gameId,
  partnerId,
  day,
  count: spins,
  wageredMicros,
  creditedMicros: paidMicros,
});

const ofGames = (table: string): DayShape => ({
  table,
  isOfGames: true,
  countColumn: 'spins',
  counted: 'spins',
  creditedColumn: 'paid_micros',
});

const OPENINGS: DayShape = {
  table: 'opening_days',
  isOfGames: false,
  countColumn: 'players',
  counted: 'openings',
  creditedColumn: 'opened_micros',
};

const ADJUSTMENTS: DayShape = {
  table: 'adjustment_days',
  isOfGames: false,
  countColumn: 'adjustments',
  counted: 'adjustments',
  creditedColumn: 'amount_micros',
};

/** All tables by day but that of communal shares, which their replay checks. */
export const dayTables = (facts: Facts, findings: Findings) => ({
  games: new DayTable(ofGames('game_days'), facts.gameDays.map(gameRow), findings),
  sandbox: new DayTable(ofGames('sandbox_days'), facts.sandboxDays.map(gameRow), findings),
  openings: new DayTable(
    OPENINGS,
    facts.openingDays.map(({ partnerId, day, players, openedMicros }) => ({
      id: partnerId,
      partnerId,
      day,
      count: players,
      wageredMicros: 0n,
      creditedMicros: openedMicros,
    })),
    findings,
  ),
  adjustments: new DayTable(
    ADJUSTMENTS,
    facts.adjustmentDays.map(({ partnerId, day, adjustments, amountMicros }) => ({
      id: partnerId,
      partnerId,
      day,
      count: adjustments,
      wageredMicros: 0n,
      creditedMicros: amountMicros,
    })),
    findings,
  ),
});
