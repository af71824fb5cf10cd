/**
 * Compares daily sums of the ledger with the daily tables of games, forced spins, openings and adjustments.
 */
import type { Facts } from './auditReads.store.js';
import type { AuditedGameDay } from './gameAuditReads.store.js';
import type { Findings, Place } from './report.js';
import { Sum } from './tables.js';

/** Row of a daily table: a game or partner on one day. */
interface BookedDay {
  /** Id of the game or the partner of the row. */
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

/** Names of a daily table and its columns, for findings. */
interface DayShape {
  readonly table: string;
  /** True if the rows are per game, false if they are per partner. */
  readonly isOfGames: boolean;
  readonly countColumn: string;
  readonly counted: string;
  readonly creditedColumn: string;
}

/** One daily table, with sums of the ledger entries of the day that the ledger pass is reading. */
class DayTable {
  /** Rows of days that the ledger pass has not reached yet. */
  readonly #booked: Map<string, BookedDay>;
  readonly #sums = new Map<number, DaySum>();
  readonly rows: number;
  /** Sum of credits minus wagers over all rows of the daily table, in micro-USD. */
  readonly netMicros: bigint;

  constructor(
    private readonly shape: DayShape,
    rows: readonly BookedDay[],
    private readonly findings: Findings,
  ) {
    this.#booked = new Map(rows.map((row) => [`${row.id}/${row.day}`, row]));
    this.rows = rows.length;
    this.netMicros = rows.reduce((sum, row) => sum + row.creditedMicros - row.wageredMicros, 0n);
  }

  add(id: number, partnerId: number, wager: number, credit: number, count = 1): void {
    const sum = this.#sumOf(id, partnerId);
    sum.count += count;
    sum.wagered.add(wager);
    sum.credited.add(credit);
  }

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

  /** Compares the sums of a day's ledger entries with the rows of the daily table. */
  close(day: string): void {
    const { table, isOfGames, countColumn, counted, creditedColumn } = this.shape;
    for (const [id, sum] of this.#sums) {
      const key = `${id}/${day}`;
      const booked = this.#booked.get(key);
      this.#booked.delete(key);
      const at = this.#place(id, sum.partnerId, day);
      const differ = (column: string, rule: string, expected: bigint, found: bigint | undefined): void => {
        if (found !== expected)
          this.findings.found(
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

  /** Reports the rows whose day has no entries in the ledger. Must be called after the last day. */
  finish(): void {
    const problem = `${this.shape.table} has a day without entries in the ledger`;
    for (const { id, partnerId, day, count } of this.#booked.values())
      this.findings.found('double-entry', problem, this.#place(id, partnerId, day), 0, count);
  }

  #place(id: number, partner: number, day: string): Place {
    return this.shape.isOfGames ? { game: id, partner, day } : { partner, day };
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

/** All daily tables except that of communal shares, which CommunalReplay checks. */
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
