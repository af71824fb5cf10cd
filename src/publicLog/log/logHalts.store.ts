/**
 * Halts of the public log. The reason is stored with the log, so that every worker finds it, also after a
 * restart.
 */
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';
import type { LogState } from './publicLog.store.js';

/** Note with the log's signature and a tree that is not part of the log. */
export interface Evidence {
  /** Description of the evidence for people. */
  readonly problem: string;
  readonly note: string;
}

/**
 * Halts the current log, unless the log has changed since the evidence was checked. Can be repeated.
 * @param state state of the log when the evidence was checked
 * @param isHeld whether dealing stops too
 * @returns false if the log has changed and the evidence must be checked again
 */
export async function haltLog(
  sql: Sql,
  { logId, size }: Pick<LogState, 'logId' | 'size'>,
  { problem, note }: Evidence,
  { isHeld, actor }: { readonly isHeld: boolean; readonly actor: string },
): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ logId: number; origin: string; size: bigint; isKnown: boolean }[]>`
      SELECT log_id, origin, size, halt IS NOT NULL AND (is_held OR NOT ${isHeld}::boolean) AS is_known
      FROM logs ORDER BY log_id DESC LIMIT 1 FOR UPDATE`;
    if (row === undefined || row.logId !== logId || row.size !== BigInt(size)) return false;
    if (row.isKnown) return true;
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
