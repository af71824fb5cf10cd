/**
 * Drops a day of the ledger. One transaction moves the boundary balances (boundary_*, kept_entries) to the
 * end of the day and detaches the day's partition. The detached table is dropped afterwards, which blocks
 * nobody.
 *
 * Detaching is the only step that locks the whole ledger. It uses a short lock timeout and many attempts, so
 * that no flush waits longer than one timeout.
 */

import { DAY_MS, shiftDay } from '../../domain/days.js';
import { entryCellSql } from '../../domain/entryId.js';
import { entryCodesSql } from '../../domain/ledgerEntry.js';
import { allColumnsSql } from '../../engine/ledger/ledgerRow.store.js';
import { checkpointCell } from '../../engine/recovery/recoveries.store.js';
import { bindingTimes } from '../../engine/requestIds/requestRunReads.store.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { boundLocks } from '../../postgres/limits.js';
import { raw, safe } from '../../postgres/statements.js';
import { movePots } from '../audit/boundary.store.js';
import { idsOfDay, partitionOf } from './ledgerDays.store.js';

/** Advisory lock. It ensures that only one process drops a day at a time. */
const DROP_LOCK = 7_310_017;
/** Lock timeout for detaching a partition, in ms. A flush never waits longer than this behind the lock. */
const LOCK_MS = 200;
const RETRY_MS = 500;
/** Maximum number of attempts to detach a partition: about two minutes. */
const TRIES_MAX = 170;

export type DropStep = 'drop.boundary' | 'drop.detached' | 'drop.dropped';

export interface LedgerDropOptions {
  readonly day: string;
  /** Hash of the manifest of the archive that was verified before the drop. */
  readonly manifestHash: string;
  readonly keepDays: number;
  /** Current UTC day, YYYY-MM-DD. */
  readonly today: string;
  readonly actor: string;
  readonly onFailpoint: (step: DropStep) => void;
}

export async function whyNotDrop(
  sql: Sql | Transaction,
  { day, keepDays, today }: Pick<LedgerDropOptions, 'day' | 'keepDays' | 'today'>,
): Promise<string | undefined> {
  const [record] = await sql<{ isDropped: boolean }[]>`
    SELECT dropped_at IS NOT NULL AS is_dropped FROM ledger_days WHERE day = ${day}::date`;
  if (record === undefined) return `${day} is not archived`;
  if (record.isDropped) return undefined;
  const { longestMs } = await bindingTimes(sql as Sql);
  const days = Math.max(keepDays, Math.ceil(longestMs / DAY_MS), 2);
  const newest = shiftDay(today, -days - 1);
  if (day > newest)
    return `${day} must be kept, because the newest ${days} complete days are kept (LEDGER_KEEP_DAYS, and the time for which request ids bind)`;
  const [earlier] = await sql<{ day: string }[]>`
    SELECT to_char(to_date(right(relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') AS day FROM pg_class JOIN pg_inherits ON inhrelid = oid
    WHERE inhparent = 'ledger'::regclass AND relname ~ '^ledger_[0-9]{8}$' AND relname < ${partitionOf(day)}
      AND NOT EXISTS (SELECT 1 FROM ledger_days WHERE dropped_at IS NOT NULL AND relname = 'ledger_' || to_char(day, 'YYYYMMDD'))
    ORDER BY 1 LIMIT 1`;
  if (earlier !== undefined)
    return `${earlier.day} must be dropped before ${day}, because the oldest day is dropped first`;
  // Request ids of the day may still bind although their time has expired by the clock, because each cell
  // releases them later. A rebuild of Redis learns of such request ids only from the ledger, so the day must
  // be kept until then.
  const [behind] = await sql<{ cell: number }[]>`
    SELECT cell FROM cells WHERE bound_from_id < ${idsOfDay(day).to} ORDER BY cell LIMIT 1`;
  if (behind !== undefined)
    return `request ids of ${day} may still bind in cell ${behind.cell}. Run the service until they have expired there`;
  const [pending] = await sql<{ partnerId: number }[]>`
    SELECT partner_id FROM (SELECT DISTINCT ON (partner_id) partner_id, status, is_complete FROM settlement_reports
      WHERE report_date = ${day}::date ORDER BY partner_id, revision DESC) newest
    WHERE status = 'PENDING' OR NOT is_complete LIMIT 1`;
  if (pending !== undefined)
    return `the newest report of partner ${pending.partnerId} for ${day} is not complete. Run the service until the complete report is made`;
  const [refunding] = await sql<{ gameId: number }[]>`
    SELECT game_id FROM raffles WHERE voided_at IS NOT NULL AND refunds_done_at IS NULL ORDER BY voided_at, game_id LIMIT 1`;
  if (refunding !== undefined)
    return `raffle ${refunding.gameId} is voided, but its refunds are not complete. Run the service until they are`;
  return undefined;
}

/**
 * Drops a day that is archived and verified. An interrupted drop can be repeated and continues where it
 * stopped.
 * @returns the reason why the day can't be dropped; undefined if it was dropped
 */
export async function dropFromLedger(sql: Sql, options: LedgerDropOptions): Promise<string | undefined> {
  const { day, onFailpoint } = options;
  const refused = await whyNotDrop(sql, options);
  if (refused !== undefined) return refused;
  await checkpointBefore(sql, idsOfDay(day).to);
  const wrong = await sql.begin((tx) => detach(tx, options));
  if (wrong !== undefined) return wrong;
  onFailpoint('drop.detached');
  // Nobody reads the detached table any more, so dropping it blocks nobody.
  await sql.begin(async (tx) => {
    await tx.patiently();
    await tx`DROP TABLE IF EXISTS ${raw(partitionOf(day))}`;
  });
  onFailpoint('drop.dropped');
  return undefined;
}

/** Moves the player checkpoints, from which a rebuild starts, past the end of a day. */
async function checkpointBefore(sql: Sql, toId: bigint): Promise<void> {
  const cells = await sql<{ cell: number }[]>`SELECT cell FROM cells WHERE unchecked_from < ${toId}`;
  for (const { cell } of cells) await checkpointCell(sql, cell, toId);
}

async function detach(tx: Transaction, options: LedgerDropOptions): Promise<string | undefined> {
  const { day, manifestHash, actor, onFailpoint } = options;
  await tx.patiently();
  await tx`SELECT pg_advisory_xact_lock(${DROP_LOCK})`;
  const [record] = await tx<{ manifestHash: string; entries: bigint; isDropped: boolean }[]>`
    SELECT manifest_hash, entries, dropped_at IS NOT NULL AS is_dropped FROM ledger_days WHERE day = ${day}::date`;
  if (record === undefined) return `${day} is not archived`;
  if (record.manifestHash !== manifestHash) return `${day} was archived with another manifest`;
  if (record.isDropped) return undefined;
  const refused = await whyNotDrop(tx, options);
  if (refused !== undefined) return refused;
  const partition = raw(partitionOf(day));
  const [there] = await tx<{ entries: bigint }[]>`SELECT count(*) AS entries FROM ${partition}`;
  if (there!.entries !== record.entries)
    return `the ledger has ${there!.entries} entries of ${day}, but the archive has ${record.entries}`;
  await moveBoundary(tx, day);
  onFailpoint('drop.boundary');
  await tx`UPDATE ledger_days SET dropped_at = now() WHERE day = ${day}::date`;
  const after = { entries: safe(record.entries), manifestHash };
  await writeAuditEntry(tx, { actor, action: 'ledger.drop', subject: `ledger:${day}`, after });
  return lockedOut(tx, partition, day);
}

/** Moves the boundary balances (the state where the kept ledger begins) to the end of the dropped day. */
async function moveBoundary(tx: Transaction, day: string): Promise<void> {
  const partition = raw(partitionOf(day));
  await tx`
    INSERT INTO boundary_players AS t (partner_id, player_id, entry_id, entry_number, outcome_code, balance_micros, first_id)
    SELECT l.partner_id, l.player_id, l.entry_id, l.entry_number, l.outcome_code, l.balance_micros, n.first_id
    FROM (SELECT max(entry_id) AS entry_id, min(entry_id) AS first_id FROM ${partition} GROUP BY partner_id, player_id) n
      JOIN ${partition} l USING (entry_id)
    ON CONFLICT (partner_id, player_id) DO UPDATE SET entry_id = excluded.entry_id, entry_number = excluded.entry_number,
      outcome_code = excluded.outcome_code, balance_micros = excluded.balance_micros`;
  const dealt = raw(entryCodesSql(({ advancesGameIndex }) => advancesGameIndex));
  await tx`
    INSERT INTO boundary_games AS t (game_id, next_index)
    SELECT game_id, max(outcome_index) + 1 FROM ${partition} WHERE kind IN ${dealt} GROUP BY game_id
    ON CONFLICT (game_id) DO UPDATE SET next_index = greatest(t.next_index, excluded.next_index)`;
  await tx`
    INSERT INTO boundary_cells AS t (cell, entry_id)
    SELECT ${raw(entryCellSql('entry_id'))}, max(entry_id) FROM ${partition} GROUP BY 1
    ON CONFLICT (cell) DO UPDATE SET entry_id = greatest(t.entry_id, excluded.entry_id)`;
  const adjustments = raw(entryCodesSql(({ requestIds }) => requestIds === 'adjustments'));
  await tx`
    INSERT INTO kept_entries (${raw(allColumnsSql())}) SELECT ${raw(allColumnsSql('l'))} FROM ${partition} l
    WHERE kind IN ${adjustments} OR EXISTS (SELECT 1 FROM raffles r WHERE r.game_id = l.game_id)
    ON CONFLICT (entry_id) DO NOTHING`;
  const { from, to } = idsOfDay(day);
  const [last] = await tx<{ day: string | null }[]>`
    SELECT max(day)::text AS day FROM ledger_days WHERE dropped_at IS NOT NULL`;
  const keptFrom = last!.day === null ? 0n : idsOfDay(last!.day).to;
  await movePots(tx, partition, { fromId: keptFrom, toId: to });
  // Blackjack rounds that were open at midnight stay in Postgres, because the reports of both days count
  // them.
  await tx`
    DELETE FROM rounds WHERE status <> 'OPEN' AND deal_id >= ${from} AND deal_id < ${to} AND entry_ids[cardinality(entry_ids)] < ${to}`;
}

/**
 * Detaches the partition of a day.
 * @throws Error if the ledger stayed locked for about two minutes
 */
async function lockedOut(tx: Transaction, partition: unknown, day: string): Promise<string | undefined> {
  await boundLocks(tx, LOCK_MS);
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    await tx`SAVEPOINT detaching`;
    try {
      await tx`ALTER TABLE ledger DETACH PARTITION ${partition}`;
      return undefined;
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
      await tx`ROLLBACK TO SAVEPOINT detaching`;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
  throw new Error(
    `${day} was not dropped, because another session kept reading the ledger. Run the command again`,
  );
}

/** SQLSTATE of a lock that was not granted within lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03';
