/**
 * Compares daily sums of the ledger with the daily tables of games, forced spins, openings and adjustments,
 * and their total with all balances. Postgres could sum the days, too, but only by reading the ledger again.
 */
import { auditedKindOf } from '../../domain/auditedKinds.js';
import { DAY_MS, dayOf } from '../../domain/days.js';
import type { LedgerEntryKind } from '../../domain/ledgerEntry.js';
import type { Facts } from './auditReads.store.js';
import type { AuditedGameDay } from './gameAuditReads.store.js';
import type { CheckedEntry, LedgerCheck } from './ledgerCheck.js';
import type { Findings, Place } from './report.js';
import { type PlayerTable, Sum } from './tables.js';

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

  add(gameId: number, partnerId: number, wager: number, credit: number, count: number): void {
    const sum = this.#sumOf(gameId, partnerId);
    sum.count += count;
    sum.wagered.add(wager);
    sum.credited.add(credit);
  }

  addTotal(gameId: number, partnerId: number, count: number, wagered: bigint, credited: bigint): void {
    const sum = this.#sumOf(gameId, partnerId);
    sum.count += count;
    sum.wagered.addExact(wagered);
    sum.credited.addExact(credited);
  }

  #sumOf(gameId: number, partnerId: number): DaySum {
    const id = this.shape.isOfGames ? gameId : partnerId;
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

const dayTables = (facts: DayFacts, findings: Findings) => ({
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

type DayFacts = Pick<
  Facts,
  'gameDays' | 'sandboxDays' | 'openingDays' | 'adjustmentDays' | 'communal' | 'boundary'
>;

/** The daily table of each kind, and how much an entry adds to its count. CommunalReplay sums the shares. */
const TABLES: Readonly<
  Record<LedgerEntryKind, readonly [keyof ReturnType<typeof dayTables>, number] | undefined>
> = {
  spin: ['games', 1],
  opening: ['openings', 1],
  adjustment: ['adjustments', 1],
  communalShare: undefined,
  roundDeal: ['games', 1],
  roundAction: ['games', 0],
  roundVoid: ['games', -1],
  forcedSpin: ['sandbox', 1],
};

export class DayCheck implements LedgerCheck {
  readonly #days: ReturnType<typeof dayTables>;
  #day = -1;

  /** @param players must have passed an entry before this check gets it */
  constructor(
    private readonly facts: DayFacts,
    private readonly findings: Findings,
    private readonly players: Pick<PlayerTable, 'balance' | 'count'>,
  ) {
    this.#days = dayTables(facts, findings);
  }

  /** Compares the dropped days, whose sums are in their manifests. */
  async begin(): Promise<void> {
    for (const { day, totals } of this.facts.boundary.days) {
      for (const { partnerId, gameId, kind: code, entries, wageredMicros, creditedMicros } of totals) {
        const kind = auditedKindOf(code);
        const place = kind && TABLES[kind];
        if (place === undefined) continue;
        const [table, count] = place;
        const sums = [count * entries, BigInt(wageredMicros), BigInt(creditedMicros)] as const;
        this.#days[table].addTotal(gameId, partnerId, ...sums);
      }
      this.#close(day);
    }
  }

  row(entry: CheckedEntry): void {
    const day = Math.floor(entry.timeMs / DAY_MS);
    if (day !== this.#day) {
      if (this.#day >= 0) this.#close(dayOf(this.#day * DAY_MS));
      this.#day = day;
    }
    const { kind, kindCode, gameId, partnerId, wager, credit } = entry;
    if (kind === undefined) {
      const problem = 'the kind of the entry is unknown';
      this.findings.found('double-entry', problem, entry.place, '1 to 4, or 6 to 9', kindCode);
      return;
    }
    const place = TABLES[kind];
    if (place !== undefined) this.#days[place[0]].add(gameId, partnerId, wager, credit, place[1]);
  }

  #close(day: string): void {
    for (const table of Object.values(this.#days)) table.close(day);
  }

  end(): void {
    if (this.#day >= 0) this.#close(dayOf(this.#day * DAY_MS));
    for (const table of Object.values(this.#days)) table.finish();
    const balances = new Sum();
    for (let slot = 0; slot < this.players.count; slot++) balances.add(this.players.balance[slot]!);
    let expected = 0n;
    for (const { netMicros } of Object.values(this.#days)) expected += netMicros;
    for (const { paidMicros } of this.facts.communal.days) expected += paidMicros;
    if (balances.value !== expected) {
      const problem = 'the sum of all balances is not openings − wagers + payouts + adjustments + shares';
      this.findings.found('double-entry', problem, {}, expected, balances.value);
    }
    const { games, openings, adjustments } = this.#days;
    this.findings.looked('double-entry', 'days of games', games.rows);
    this.findings.looked('double-entry', 'days of openings', openings.rows);
    this.findings.looked('double-entry', 'days of adjustments', adjustments.rows);
  }
}
