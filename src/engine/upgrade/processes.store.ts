/**
 * SQL of the running processes and of the data format that they write. Both are needed for an upgrade under
 * live traffic.
 */
import type { Formats } from '../../domain/formats.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';

export interface ProcessFacts {
  readonly processId: string;
  readonly version: string;
  /** Roles of the process: `http`, `worker`, or both separated by a comma. */
  readonly roles: string;
  readonly host: string;
  readonly formats: Formats;
}

export interface RunningProcess extends ProcessFacts {
  readonly startedAt: Date;
  readonly seenAt: Date;
}

/**
 * Time, in seconds, after which a process that did not report does not count as running. It may only be
 * paused and continue later.
 */
export const GONE_AFTER_S = 30;

/** @param lock `share` prevents the completion of an upgrade until the transaction ends */
async function formatOf(tx: Sql | Transaction, lock: 'share' | 'none'): Promise<number> {
  const rows =
    lock === 'share'
      ? await tx<{ format: number }[]>`SELECT format FROM installation FOR SHARE`
      : await tx<{ format: number }[]>`SELECT format FROM installation`;
  if (rows.length === 0) throw new Error('The service was never started on this database. Start it once.');
  return rows[0]!.format;
}

/**
 * Registers a process as running, and removes processes that have not reported for a day.
 * @param judge throws if the process can't read the format; nothing is registered in that case
 * @returns the written format
 */
export async function registerProcess(
  sql: Sql,
  { processId, version, roles, host, formats }: ProcessFacts,
  judge: (format: number) => void,
): Promise<number> {
  return sql.begin(async (tx) => {
    const format = await formatOf(tx, 'share');
    judge(format);
    await tx`DELETE FROM processes WHERE seen_at < now() - interval '1 day'`;
    await tx`
      INSERT INTO processes (process_id, version, roles, host, oldest_format, newest_format)
      VALUES (${processId}::uuid, ${version}, ${roles}, ${host}, ${formats.oldest}, ${formats.newest})
      ON CONFLICT (process_id) DO UPDATE SET seen_at = now()`;
    return format;
  });
}

export const writtenFormat = (sql: Sql): Promise<number> => formatOf(sql, 'none');

/** @returns the written format, and whether the process was still registered */
export async function seeProcess(sql: Sql, processId: string): Promise<{ format: number; isKnown: boolean }> {
  const seen = await sql<{ format: number }[]>`
    UPDATE processes SET seen_at = now() WHERE process_id = ${processId}::uuid RETURNING (SELECT format FROM installation)`;
  return { format: seen[0]?.format ?? (await formatOf(sql, 'none')), isKnown: seen.length > 0 };
}

export async function forgetProcess(sql: Sql, processId: string): Promise<void> {
  await sql`DELETE FROM processes WHERE process_id = ${processId}::uuid`;
}

/**
 * Reads the written format and the processes that have reported within the last {@link GONE_AFTER_S} seconds,
 * oldest first.
 */
export async function runningProcesses(
  sql: Sql | Transaction,
): Promise<{ format: number; processes: RunningProcess[] }> {
  const format = await formatOf(sql, 'none');
  const processes = await sql<RunningProcess[]>`
    SELECT process_id, version, roles, host, json_build_object('oldest', oldest_format, 'newest', newest_format) AS formats,
      started_at, seen_at FROM processes
    WHERE seen_at > now() - ${GONE_AFTER_S} * interval '1 second' ORDER BY started_at, process_id`;
  return { format, processes };
}

/**
 * Raises the written format, with an entry in the audit log, unless a running process can't read the new
 * format.
 * @returns the processes that can't; empty if the format was raised
 */
export async function finishUpgrade(sql: Sql, actor: string, to: number): Promise<RunningProcess[]> {
  return sql.begin(async (tx) => {
    // Because of the lock, a process that starts at the same time waits and then checks the new format.
    const [row] = await tx<{ format: number }[]>`SELECT format FROM installation FOR UPDATE`;
    const { processes } = await runningProcesses(tx);
    const against = processes.filter(({ formats }) => to > formats.newest || to < formats.oldest);
    if (against.length > 0 || row!.format >= to) return against;
    await tx`UPDATE installation SET format = ${to}`;
    await writeAuditEntry(tx, {
      actor,
      action: 'upgrade.finish',
      subject: 'installation',
      before: { format: row!.format },
      after: { format: to },
    });
    return [];
  });
}
