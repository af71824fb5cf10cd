/** Reads the data for `spindle settlement verify` from one snapshot. Writes and locks nothing. */
import type { EntryTotal, Manifest } from '../../domain/ledgerDay.js';
import { entryOfCode } from '../../domain/ledgerEntry.js';
import type { OpenRounds, ReportStatus } from '../../domain/settlement.js';
import { openRoundsAt } from '../../engine/blackjack/rounds.store.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';
import { FIRST_DAY } from './settledDays.store.js';

/** Position of a report in the hash chain. */
export interface Link {
  readonly partnerId: number;
  readonly date: string;
  readonly revision: number;
  readonly status: ReportStatus;
  readonly isComplete: boolean;
  readonly integrityHash: string;
}

/** Record of a report in the audit log. */
export interface AuditedSettlement {
  /** Subject in the audit log: `settlement:<partner>:<date>` */
  readonly subject: string;
  readonly revision: number;
  readonly status: string;
  readonly integrityHash: string;
}

export interface ReportText {
  readonly partnerId: number;
  readonly revision: number;
  /** Canonical JSON of the report, as stored. */
  readonly text: string;
}

export interface GameSums {
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
  readonly communityBonusMicros: bigint;
}

export const NO_GAME_SUMS: GameSums = {
  spins: 0n,
  wageredMicros: 0n,
  paidMicros: 0n,
  communityBonusMicros: 0n,
};

export interface LedgerSums {
  readonly games: ReadonlyMap<number, GameSums>;
  readonly adjustmentsMicros: bigint;
  readonly rows: number;
}

export interface SettlementSnapshot {
  /** Reports in the order of their creation. */
  readonly links: readonly Link[];
  /** Audit log records of reports, oldest first. */
  readonly witnesses: readonly AuditedSettlement[];
  readonly firstDays: ReadonlyMap<number, string>;
  /** Id of the oldest entry in the ledger; undefined if the ledger is empty. */
  readonly firstEntryId: bigint | undefined;
  texts(date: string): Promise<ReportText[]>;
  /** Sums the ledger rows of each partner with ids from `from` (inclusive) to `to` (exclusive). */
  sums(ids: { from: bigint; to: bigint }, partnerId?: number): Promise<Map<number, LedgerSums>>;
  /** Totals of dropped days, as recorded when the days were archived. `sums` finds no rows of these days. */
  readonly dropped: ReadonlyMap<string, readonly EntryTotal[]>;
  openRounds(partnerId: number, before: bigint): Promise<OpenRounds>;
}

/**
 * Runs a function with a read-only snapshot of settlement data.
 * @param partnerId limits the snapshot to one partner; undefined means all partners
 */
export async function withSettlementSnapshot<T>(
  sql: Sql,
  partnerId: number | undefined,
  run: (snapshot: SettlementSnapshot) => Promise<T>,
): Promise<T> {
  return sql.begin(async (tx) => {
    // The lock on the ledger is taken before the snapshot. Otherwise a day might be dropped in between, and
    // its entries would be missing from only one side of the comparison.
    await tx`LOCK TABLE ledger IN ACCESS SHARE MODE`;
    await tx.patiently();
    const only = raw(partnerId === undefined ? 'true' : `partner_id = ${Number(partnerId)}`);
    const links = await tx<Link[]>`
      SELECT partner_id, report_date::text AS date, revision, status, is_complete, integrity_hash
      FROM settlement_reports WHERE ${only} ORDER BY report_id`;
    const witnesses = await tx<AuditedSettlement[]>`
      SELECT subject, (after->>'revision')::int AS revision, after->>'reportStatus' AS status,
             after->>'integrityHash' AS integrity_hash
      FROM audit_log WHERE action LIKE 'settlement.%'
        AND (${partnerId ?? null}::int IS NULL OR subject LIKE 'settlement:' || ${partnerId ?? null}::int || ':%')
      ORDER BY audit_id`;
    const firstDays = await tx<{ partnerId: number; firstDay: string }[]>`
      SELECT partner_id, ${FIRST_DAY}::text AS first_day FROM partners p WHERE ${only}`;
    const [oldest] = await tx<{ entryId: bigint }[]>`SELECT entry_id FROM ledger ORDER BY entry_id LIMIT 1`;
    const dropped = await tx<{ day: string; manifest: string }[]>`
      SELECT day::text AS day, manifest FROM ledger_days WHERE dropped_at IS NOT NULL`;
    return run({
      firstEntryId: oldest?.entryId,
      dropped: new Map(dropped.map(({ day, manifest }) => [day, (JSON.parse(manifest) as Manifest).totals])),
      links,
      witnesses,
      firstDays: new Map(firstDays.map((row) => [row.partnerId, row.firstDay])),
      texts: (date) =>
        tx<ReportText[]>`
          SELECT partner_id, revision, report::text AS text FROM settlement_reports
          WHERE report_date = ${date}::date AND ${only} ORDER BY report_id`,
      openRounds: (of, before) => openRoundsAt(tx, of, before),
      sums: (ids, of) => ledgerSums(tx, ids, of ?? partnerId),
    });
  }, 'ISOLATION LEVEL REPEATABLE READ, READ ONLY');
}

async function ledgerSums(
  tx: Transaction,
  { from, to }: { from: bigint; to: bigint },
  partnerId: number | undefined,
): Promise<Map<number, LedgerSums>> {
  const only = raw(partnerId === undefined ? 'true' : `partner_id = ${Number(partnerId)}`);
  // The range is literal SQL text. With bound parameters the planner could not exclude the partitions of
  // other days.
  const range = raw(`entry_id >= ${from} AND entry_id < ${to}`);
  const rows = await tx<Total[]>`
    SELECT partner_id, kind, game_id, count(*) AS entries, sum(wager_micros) AS wagered,
           sum(credit_micros) AS credited
    FROM ledger WHERE ${range} AND ${only} GROUP BY partner_id, kind, game_id`;
  return sumsOf(rows);
}

/**
 * Returns the sums of a dropped day from the totals of its archive.
 * @param partnerId limits the sums to one partner; undefined means all partners
 */
export const archivedSums = (totals: readonly EntryTotal[], partnerId?: number): Map<number, LedgerSums> =>
  sumsOf(
    totals
      .filter((total) => partnerId === undefined || total.partnerId === partnerId)
      .map(({ entries, wageredMicros, creditedMicros, ...total }) => ({
        ...total,
        entries: BigInt(entries),
        wagered: BigInt(wageredMicros),
        credited: BigInt(creditedMicros),
      })),
  );

interface Total {
  readonly partnerId: number;
  readonly gameId: number;
  readonly kind: number;
  readonly entries: bigint;
  readonly wagered: bigint;
  readonly credited: bigint;
}

function sumsOf(totals: readonly Total[]): Map<number, LedgerSums> {
  const sums = new Map<number, LedgerSums>();
  for (const row of totals) {
    const before = sums.get(row.partnerId);
    const games = new Map(before?.games);
    let adjustmentsMicros = before?.adjustmentsMicros ?? 0n;
    const { counterpart, spins } = entryOfCode(row.kind);
    const game = games.get(row.gameId) ?? NO_GAME_SUMS;
    switch (counterpart) {
      case 'game':
        games.set(row.gameId, {
          ...game,
          spins: game.spins + BigInt(spins) * row.entries,
          wageredMicros: game.wageredMicros + row.wagered,
          paidMicros: game.paidMicros + row.credited,
        });
        break;
      case 'communal':
        games.set(row.gameId, { ...game, communityBonusMicros: row.credited });
        break;
      case 'adjustment':
        adjustmentsMicros += row.credited;
        break;
      // Openings and sandbox entries are in no settlement report.
      case 'opening':
      case 'sandbox':
      case 'none':
        break;
      default:
        counterpart satisfies never;
    }
    sums.set(row.partnerId, { games, adjustmentsMicros, rows: (before?.rows ?? 0) + Number(row.entries) });
  }
  return sums;
}
