/**
 * Reads the days of the ledger: their state, the contents of an archive, and the record of archived days
 * (docs/archive.md).
 */

import { DAY_MS, dayOf, startOf } from '../../domain/days.js';
import { entryCellSql, firstIdAt } from '../../domain/entryId.js';
import { LARGE_WIN_MEMBERS } from '../../domain/ledgerColumns.js';
import type {
  ArchiveFile,
  DayState,
  EntryTotal,
  LedgerDay as LedgerDaySchema,
} from '../../domain/ledgerDay.js';
import type { WithDates } from '../../domain/schema.js';
import { allColumnsSql, columnsSql } from '../../engine/ledger/ledgerRow.store.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { type CopyRow, readRows } from '../../postgres/copy.js';
import { raw, safe } from '../../postgres/statements.js';
import { FIRST_DAY, IS_OVERTAKEN } from '../settlement/settledDays.store.js';

export type LedgerDay = Omit<WithDates<typeof LedgerDaySchema, 'archivedAt' | 'droppedAt'>, 'isDroppable'>;

/** Range of entry ids of a day: from is inclusive, to is exclusive. */
export const idsOfDay = (day: string): { from: bigint; to: bigint } => ({
  from: firstIdAt(startOf(day)),
  to: firstIdAt(startOf(day) + DAY_MS),
});

export const partitionOf = (day: string): string => `ledger_${day.replaceAll('-', '')}`;

interface Partition {
  readonly day: string;
  readonly bytes: number;
  /** Size of a partition of the ledger without its indexes. */
  readonly heapBytes: number;
}

/**
 * Maximum size of a day's partition, in bytes, for exact counting. Such a partition has about 12,000 entries
 * at most, which takes milliseconds to count.
 */
const COUNTED_BYTES = 2 * 1024 * 1024;

/** Returns the ledger partitions up to and including a day, oldest first. */
async function partitionsThrough(sql: Sql | Transaction, through: string): Promise<Partition[]> {
  const rows = await sql<{ day: string; bytes: bigint; heapBytes: bigint }[]>`
    SELECT to_char(to_date(right(relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') AS day, pg_total_relation_size(oid) AS bytes,
      pg_relation_size(oid) AS heap_bytes
    FROM pg_class JOIN pg_inherits ON inhrelid = oid
    WHERE inhparent = 'ledger'::regclass AND relname ~ '^ledger_[0-9]{8}$' AND right(relname, 8) <= ${through.replaceAll('-', '')}
    ORDER BY 1`;
  return rows.map((row) => ({ day: row.day, bytes: safe(row.bytes), heapBytes: safe(row.heapBytes) }));
}

interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Plan Rows': number;
  readonly Plans?: readonly PlanNode[];
}

/**
 * Query for the number of entries by day: an exact count for small days, and the planner's estimate from the
 * partition's size for large ones.
 */
async function entriesOf(
  tx: Transaction,
  partitions: readonly Partition[],
): Promise<ReadonlyMap<string, { entries: number; isEstimate: boolean }>> {
  const entries = new Map<string, { entries: number; isEstimate: boolean }>();
  const small = partitions.filter(({ heapBytes }) => heapBytes <= COUNTED_BYTES);
  const counts = small.map(
    ({ day }) => `SELECT '${day}' AS day, count(*) AS entries FROM ${partitionOf(day)}`,
  );
  const counted =
    counts.length === 0
      ? []
      : await tx<{ day: string; entries: bigint }[]>`${raw(counts.join(' UNION ALL '))}`;
  for (const row of counted) entries.set(row.day, { entries: safe(row.entries), isEstimate: false });
  const large = partitions.filter(({ heapBytes }) => heapBytes > COUNTED_BYTES);
  if (large.length === 0) return entries;
  const reads = large.map(({ day }) => `SELECT 1 FROM ${partitionOf(day)}`).join(' UNION ALL ');
  const [explained] = await tx<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }[]>`
    EXPLAIN (FORMAT JSON) ${raw(reads)}`;
  const estimates = new Map<string, number>();
  const visit = (node: PlanNode): void => {
    const name = node['Relation Name'];
    if (name !== undefined) estimates.set(name, node['Plan Rows']);
    for (const below of node.Plans ?? []) visit(below);
  };
  visit(explained!['QUERY PLAN'][0]!.Plan);
  for (const { day } of large)
    entries.set(day, { entries: estimates.get(partitionOf(day)) ?? 0, isEstimate: true });
  return entries;
}

/**
 * Returns those of the given days that are complete: every partner has a complete settlement report, and no
 * round dealt on the day is open. No entry can be added to a complete day.
 */
async function bookedDays(
  sql: Sql | Transaction,
  days: readonly string[],
  today: string,
): Promise<ReadonlySet<string>> {
  const rows = await sql<{ day: string }[]>`
    WITH p AS MATERIALIZED (SELECT partner_id, ${FIRST_DAY} AS first_day FROM partners p)
    SELECT d.day::text AS day FROM unnest(${`{${days.join()}}`}::date[]) AS d(day)
    WHERE d.day < ${today}::date
      AND NOT EXISTS (SELECT 1 FROM p WHERE p.first_day <= d.day AND NOT EXISTS (
        SELECT 1 FROM settlement_reports r
        WHERE r.partner_id = p.partner_id AND r.report_date = d.day AND r.is_complete AND NOT ${IS_OVERTAKEN}))
      AND NOT EXISTS (SELECT 1 FROM rounds WHERE status = 'OPEN'
        AND to_timestamp((deal_id >> 22) / 1000.0) < (d.day + 1)::timestamp AT TIME ZONE 'UTC'
        AND to_timestamp((deal_id >> 22) / 1000.0) >= d.day::timestamp AT TIME ZONE 'UTC')`;
  return new Set(rows.map(({ day }) => day));
}

interface ArchivedRow {
  day: string;
  entries: bigint;
  archiveBytes: bigint;
  manifestHash: string;
  archivedAt: Date;
  droppedAt: Date | null;
}

/** Returns all days up to today, oldest first. */
async function ledgerDays(sql: Transaction, today: string): Promise<LedgerDay[]> {
  // The lock on the ledger prevents other processes from detaching partitions during this transaction.
  await sql`LOCK TABLE ledger IN ACCESS SHARE MODE`;
  const partitions = new Map((await partitionsThrough(sql, today)).map((each) => [each.day, each]));
  const archived = await sql<ArchivedRow[]>`
    SELECT day::text AS day, entries, archive_bytes, manifest_hash, archived_at, dropped_at FROM ledger_days`;
  const records = new Map(archived.map((row) => [row.day, row]));
  const booked = await bookedDays(
    sql,
    [...partitions.keys()].filter((day) => !records.has(day)),
    today,
  );
  const kept = await entriesOf(
    sql,
    [...partitions.values()].filter(({ day }) => !records.has(day)),
  );
  const days = [...new Set([...partitions.keys(), ...records.keys()])].sort();
  return days.map((day) => {
    const record = records.get(day);
    const partition = partitions.get(day);
    const state: DayState = booked.has(day) ? 'BOOKED' : 'OPEN';
    return {
      day,
      state: record === undefined ? state : record.droppedAt === null ? 'ARCHIVED' : 'DROPPED',
      ...(kept.get(day) ?? { entries: safe(record!.entries), isEstimate: false }),
      bytes: partition?.bytes ?? 0,
      archiveBytes: record === undefined ? null : safe(record.archiveBytes),
      archivedAt: record?.archivedAt ?? null,
      droppedAt: record?.droppedAt ?? null,
      manifestHash: record?.manifestHash ?? null,
    };
  });
}

const LIST = (column: string): string => `array_to_string(${column}, ',')`;

/**
 * Builds the query of an archive file: columns as src/books/archive/columns.ts names them, sorted so that the
 * same rows always have the same order.
 */
function selectOf(file: ArchiveFile, day: string, largeWinMicros: ReadonlyMap<number, number>): string {
  const { from, to } = idsOfDay(day);
  const ids = (column: string): string => `${column} >= ${from} AND ${column} < ${to}`;
  if (file === 'ledger') {
    return `SELECT ${allColumnsSql()} FROM ledger WHERE ${ids('entry_id')} ORDER BY ${entryCellSql('entry_id')}, entry_id`;
  }
  if (file === 'rounds') {
    return `SELECT game_id, shoe_index, partner_id, player_id, request_id, deal_id, status, ${LIST('moves')},
        ${LIST('entry_ids')}, ${LIST('wagers_micros')}, ${LIST('balances_micros')}, payout_micros
      FROM rounds WHERE ${ids('deal_id')} ORDER BY ${entryCellSql('deal_id')}, deal_id`;
  }
  if (file === 'voids') {
    return `SELECT game_id, from_index, to_index, epoch, reason, floor(extract(epoch FROM voided_at) * 1000)::bigint
      FROM voids WHERE voided_at >= timestamptz '${day} 00:00:00+00' AND voided_at < timestamptz '${day} 00:00:00+00' + interval '24 hours'
      ORDER BY game_id, from_index`;
  }
  const limits = [...largeWinMicros].map(([partnerId, micros]) => `(${partnerId}, ${micros})`).join();
  return `SELECT ${columnsSql(LARGE_WIN_MEMBERS)} FROM ledger JOIN (VALUES ${limits === '' ? '(0, 0)' : limits}) AS p(partner_id, large_win) USING (partner_id)
    WHERE ${ids('entry_id')} AND kind = 1 AND credit_micros > large_win ORDER BY ${entryCellSql('entry_id')}, entry_id`;
}

export interface DaySource {
  readonly datasetId: string;
  /**
   * Oldest unarchived day before this day. It must be archived first. Undefined if all days before this day
   * are archived.
   */
  readonly firstToArchive: string | undefined;
  /** Manifest of this day if it has already been archived. */
  readonly archived:
    | { readonly text: string; readonly hash: string; readonly isDropped: boolean }
    | undefined;
  /** Nearest archived day before this one; null if this is the first. */
  readonly previous: { readonly day: string; readonly manifestHash: string } | null;
  readonly isBooked: boolean;
  readonly largeWinMicros: ReadonlyMap<number, number>;
  readonly reports: readonly { partnerId: number; revision: number; integrityHash: string }[];
  totals(): Promise<EntryTotal[]>;
  read(
    file: ArchiveFile,
    largeWinMicros: ReadonlyMap<number, number>,
    onRow: (row: CopyRow) => void,
    onPause: () => Promise<void>,
  ): Promise<void>;
}

/**
 * Runs a function with a consistent, read-only snapshot of one day. No partition can be detached from the
 * ledger meanwhile.
 */
export function withDay<T>(
  sql: Sql,
  { day, today }: { readonly day: string; readonly today: string },
  run: (source: DaySource) => Promise<T>,
): Promise<T> {
  return sql.begin(async (tx) => {
    // The lock on the ledger is taken before the snapshot. Otherwise, if a day was dropped in between, only
    // some reads of this transaction would still find its entries.
    await tx`LOCK TABLE ledger IN ACCESS SHARE MODE`;
    const [installed] = await tx<{ datasetId: string }[]>`SELECT dataset_id FROM installation`;
    const records = await tx<{ day: string; manifest: string; manifestHash: string; isDropped: boolean }[]>`
      SELECT day::text AS day, manifest, manifest_hash, dropped_at IS NOT NULL AS is_dropped FROM ledger_days
      WHERE day = ${day}::date OR day = (SELECT max(day) FROM ledger_days WHERE day < ${day}::date) ORDER BY day`;
    const own = records.find((row) => row.day === day);
    const before = records.find((row) => row.day < day);
    const archived = new Set(
      (await tx<{ day: string }[]>`SELECT day::text AS day FROM ledger_days`).map((row) => row.day),
    );
    const earlier = (await partitionsThrough(tx, day)).find(
      (each) => each.day < day && !archived.has(each.day),
    );
    const partners = await tx<{ partnerId: number; micros: bigint }[]>`
      SELECT partner_id, large_win_threshold_micros AS micros FROM partners ORDER BY partner_id`;
    const reports = await tx<{ partnerId: number; revision: number; integrityHash: string }[]>`
      SELECT DISTINCT ON (partner_id) partner_id, revision, integrity_hash FROM settlement_reports
      WHERE report_date = ${day}::date ORDER BY partner_id, revision DESC`;
    const isBooked = (await bookedDays(tx, [day], today)).has(day);
    await tx.patiently();
    return run({
      datasetId: installed!.datasetId,
      firstToArchive: earlier?.day,
      archived: own && { text: own.manifest, hash: own.manifestHash, isDropped: own.isDropped },
      previous: before === undefined ? null : { day: before.day, manifestHash: before.manifestHash },
      isBooked,
      largeWinMicros: new Map(partners.map((row) => [row.partnerId, safe(row.micros)])),
      reports,
      totals: () => totalsOf(tx, day),
      read: (file, largeWinMicros, onRow, onPause) => {
        const select = selectOf(file, day, largeWinMicros);
        return readRows(tx.read(`COPY (${select}) TO STDOUT (FORMAT binary)`), onRow, onPause);
      },
    });
  }, 'ISOLATION LEVEL REPEATABLE READ, READ ONLY');
}

async function totalsOf(tx: Transaction, day: string): Promise<EntryTotal[]> {
  const { from, to } = idsOfDay(day);
  const rows = await tx<
    (Pick<EntryTotal, 'partnerId' | 'gameId' | 'kind'> & Record<'entries' | 'wagered' | 'credited', bigint>)[]
  >`
    SELECT partner_id, game_id, kind, count(*) AS entries, sum(wager_micros) AS wagered, sum(credit_micros) AS credited
    FROM ledger WHERE ${raw(`entry_id >= ${from} AND entry_id < ${to}`)}
    GROUP BY partner_id, game_id, kind ORDER BY partner_id, game_id, kind`;
  return rows.map((row) => ({
    partnerId: row.partnerId,
    gameId: row.gameId,
    kind: row.kind,
    entries: safe(row.entries),
    wageredMicros: String(row.wagered),
    creditedMicros: String(row.credited),
  }));
}

/** Returns the recorded manifests, oldest first. */
export async function archivedManifests(sql: Sql): Promise<{ day: string; manifestHash: string }[]> {
  return sql<{ day: string; manifestHash: string }[]>`
    SELECT day::text AS day, manifest_hash FROM ledger_days ORDER BY day`;
}

export interface ArchivedDay {
  readonly day: string;
  readonly entries: number;
  readonly archiveBytes: number;
  readonly manifest: string;
  readonly manifestHash: string;
}

/** @returns false if it had already been recorded */
export async function recordArchive(sql: Sql, actor: string, archived: ArchivedDay): Promise<boolean> {
  const { day, entries, archiveBytes, manifest, manifestHash } = archived;
  return sql.begin(async (tx) => {
    const made = await tx`
      INSERT INTO ledger_days (day, entries, archive_bytes, manifest, manifest_hash)
      VALUES (${day}::date, ${entries}, ${archiveBytes}, ${manifest}, ${manifestHash})
      ON CONFLICT (day) DO NOTHING RETURNING 1`;
    if (made.length === 0) return false;
    const after = { entries, archiveBytes, manifestHash };
    await writeAuditEntry(tx, { actor, action: 'ledger.archive', subject: `ledger:${day}`, after });
    return true;
  });
}

export async function databaseBytes(sql: Sql): Promise<number> {
  const [row] = await sql<{ bytes: bigint }[]>`SELECT pg_database_size(current_database()) AS bytes`;
  return safe(row!.bytes);
}

/**
 * Returns the folder of the data of Postgres on its machine. Undefined if the role may not read this setting,
 * which needs the membership in pg_read_all_settings.
 */
export async function dataDirectory(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ folder: string | null }[]>`
    SELECT CASE WHEN pg_has_role('pg_read_all_settings', 'MEMBER') THEN current_setting('data_directory') END AS folder`;
  return row?.folder ?? undefined;
}

export class LedgerDays {
  constructor(private readonly sql: Sql) {}

  /**
   * Returns all days up to the given day, oldest first.
   * @param today UTC day, YYYY-MM-DD
   */
  list(today = dayOf(Date.now())): Promise<LedgerDay[]> {
    return this.sql.begin((tx) => ledgerDays(tx, today), 'READ ONLY');
  }

  /** Time from which the ledger has every entry; undefined if no day was ever dropped. */
  async keptFrom(): Promise<Date | undefined> {
    const [row] = await this.sql<{ day: string | null }[]>`
      SELECT max(day)::text AS day FROM ledger_days WHERE dropped_at IS NOT NULL`;
    const day = row?.day ?? null;
    return day === null ? undefined : new Date(startOf(day) + DAY_MS);
  }
}
