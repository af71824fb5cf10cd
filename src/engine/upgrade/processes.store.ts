/** The processes that run, and the format that they write: what an upgrade beside live traffic goes by. */
import type { Formats } from '../../domain/formats.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';

/** What a process says of itself. */
export interface ProcessFacts {
  readonly processId: string;
  readonly version: string;
  /** `http`, `worker`, or both with a comma. */
  readonly roles: string;
  readonly host: string;
  /** Those that it reads. */
  readonly formats: Formats;
}

export interface RunningProcess extends ProcessFacts {
  readonly startedAt: Date;
  readonly seenAt: Date;
}

/** A process that was not seen for so long does not count as running. It may be stopped, and go on later. */
export const GONE_AFTER_S = 30;

/** The format that is written. @param lock held until the transaction ends: no upgrade is finished meanwhile */
async function formatOf(tx: Sql | Transaction, lock: 'share' | 'none'): Promise<number> {
  const rows =
    lock === 'share'
      ? await tx<{ format: number }[]>`SELECT format FROM installation FOR SHARE`
      : await tx<{ format: number }[]>`SELECT format FROM installation`;
  if (rows.length === 0) throw new Error('The service was never started on this database');
  return rows[0]!.format;
}

/**
 * Puts a process on record as running, and others off that were not seen for a day.
 * @param judge throws where the process does not read the format; then nothing is put on record
 * @returns the format that is written
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

/** The format that is written. */
export const writtenFormat = (sql: Sql): Promise<number> => formatOf(sql, 'none');

/** Says that a process still runs. @returns the format that is written; whether the process is still on record */
export async function seeProcess(sql: Sql, processId: string): Promise<{ format: number; isKnown: boolean }> {
  const seen = await sql<{ format: number }[]>`
    UPDATE processes SET seen_at = now() WHERE process_id = ${processId}::uuid RETURNING (SELECT format FROM installation)`;
  return { format: seen[0]?.format ?? (await formatOf(sql, 'none')), isKnown: seen.length > 0 };
}

export async function forgetProcess(sql: Sql, processId: string): Promise<void> {
  await sql`DELETE FROM processes WHERE process_id = ${processId}::uuid`;
}

interface Row {
  process_id: string;
  version: string;
  roles: string;
  host: string;
  oldest_format: number;
  newest_format: number;
  started_at: Date;
  seen_at: Date;
}

/** The format that is written, and the processes that were seen within {@link GONE_AFTER_S} seconds, oldest first. */
export async function runningProcesses(
  sql: Sql | Transaction,
): Promise<{ format: number; processes: RunningProcess[] }> {
  const format = await formatOf(sql, 'none');
  const rows = await sql<Row[]>`
    SELECT process_id, version, roles, host, oldest_format, newest_format, started_at, seen_at FROM processes
    WHERE seen_at > now() - ${GONE_AFTER_S} * interval '1 second' ORDER BY started_at, process_id`;
  const processes = rows.map((row) => ({
    processId: row.process_id,
    version: row.version,
    roles: row.roles,
    host: row.host,
    formats: { oldest: row.oldest_format, newest: row.newest_format },
    startedAt: row.started_at,
    seenAt: row.seen_at,
  }));
  return { format, processes };
}

/**
 * Makes the format that is written a newer one, in writing, unless a running process does not read it.
 * @returns the processes that stand against it; none: it is done
 */
export async function finishUpgrade(sql: Sql, actor: string, to: number): Promise<RunningProcess[]> {
  return sql.begin(async (tx) => {
    // A process that starts meanwhile waits, and is judged by the new format.
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
