/** Why the public log is not appended to any more: kept with the log, so that every worker and every later start knows of it. */
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';
import type { LogState } from './publicLog.store.js';

/** A note with the log's signature of a tree that is not the log's. */
export interface Evidence {
  /** What it shows, for people. */
  readonly problem: string;
  readonly note: string;
}

/**
 * Halts the log in force, unless it has changed since the evidence was judged. Repeatable.
 * @param state by which it was judged
 * @param isHeld nothing is dealt either
 * @param actor of the audit log
 * @returns false: the log has changed, and the evidence is to be judged again
 */
export async function haltLog(
  sql: Sql,
  { logId, size }: Pick<LogState, 'logId' | 'size'>,
  { problem, note }: Evidence,
  { isHeld, actor }: { readonly isHeld: boolean; readonly actor: string },
): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ log_id: number; origin: string; size: bigint; is_known: boolean }[]>`
      SELECT log_id, origin, size, halt IS NOT NULL AND (is_held OR NOT ${isHeld}::boolean) AS is_known
      FROM logs ORDER BY log_id DESC LIMIT 1 FOR UPDATE`;
    if (row === undefined || row.log_id !== logId || row.size !== BigInt(size)) return false;
    if (row.is_known) return true;
    await tx`
      UPDATE logs SET halt = ${problem}, halt_note = ${note}, halted_at = now(), is_held = ${isHeld}::boolean WHERE log_id = ${logId}`;
    await writeAuditEntry(tx, {
      actor,
      action: 'log.halt',
      subject: `log:${row.origin}`,
      after: { problem, note, size, isDealing: !isHeld },
    });
    return true;
  });
}
