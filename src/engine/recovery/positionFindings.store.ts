/**
 * Findings of position files: files that are ahead of Postgres, or belong to another server. Until a finding
 * is settled, nothing is dealt.
 */
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';

export interface PositionDifference {
  readonly text: string;
  /**
   * True if Postgres has all that the file records: another server or timeline that may have its newest
   * state. False if the file proves that Postgres lacks something.
   */
  readonly mayBeNewest: boolean;
}

const ACCEPTED_KEPT = 100;

/**
 * Records that the stores were restored. Dealing is on hold until an operator has run `spindle recover
 * --restored`, or `--without POSITION_FILE` if Postgres may be in its newest state. Repeating the call
 * updates the reason.
 */
export async function holdForRestore(
  sql: Sql,
  positionId: string,
  { reason, mayBeNewest }: { readonly reason: string; readonly mayBeNewest: boolean },
): Promise<void> {
  await sql`
    INSERT INTO restored_positions AS r (position_id, reason, may_be_newest)
    VALUES (${positionId}::uuid, ${reason}, ${mayBeNewest})
    ON CONFLICT (position_id) DO UPDATE SET reason = excluded.reason, may_be_newest = excluded.may_be_newest
    WHERE r.accepted_at IS NULL`;
}

/** Returns the worst finding that is not settled. Its text ends before the choices (restoreCosts.ts). */
export async function openFinding(sql: Sql): Promise<PositionDifference | undefined> {
  const [row] = await sql<{ reason: string; mayBeNewest: boolean }[]>`
    SELECT reason, may_be_newest FROM restored_positions WHERE accepted_at IS NULL
    ORDER BY may_be_newest, found_at LIMIT 1`;
  return row && { text: row.reason.replace(/(\. If|: run) .*$/s, ''), mayBeNewest: row.mayBeNewest };
}

/**
 * Settles all findings of position files. The workers then begin new files.
 * @param positionId id of a position file that no worker has found
 * @returns the number of findings
 */
export async function settlePositions(tx: Transaction, positionId: string | undefined): Promise<number> {
  if (positionId !== undefined)
    await tx`
      INSERT INTO restored_positions (position_id, reason, may_be_newest)
      VALUES (${positionId}::uuid, 'settled by an operator', true) ON CONFLICT (position_id) DO NOTHING`;
  const settled = await tx`
    UPDATE restored_positions SET accepted_at = now() WHERE accepted_at IS NULL RETURNING 1`;
  await tx`
    DELETE FROM restored_positions WHERE position_id IN (
      SELECT position_id FROM restored_positions ORDER BY accepted_at DESC OFFSET ${ACCEPTED_KEPT}::int)`;
  return settled.length;
}

/** Commands for the operator to run if the public log differs from a tree that was signed. */
export const LOG_COMMANDS =
  'run `spindle log import --from DIR|URL`, or `spindle log begin` if there is no copy of the log';

/** Select expression for the worst finding of a position file that is not settled. */
export const RESTORED_SQL =
  '(SELECT reason FROM restored_positions WHERE accepted_at IS NULL ORDER BY may_be_newest, found_at LIMIT 1)';

/**
 * Select expression for the reason why dealing is on hold until an operator has run a command. The commands
 * of the public log (logHalts.store.ts) resolve the finding of the position file, too, so they come first.
 */
export const HOLD_SQL = `coalesce(
  (SELECT 'log: ' || halt || ': ${LOG_COMMANDS}' FROM logs WHERE is_held AND log_id = (SELECT max(log_id) FROM logs)),
  ${RESTORED_SQL})`;

/**
 * Returns the reason why dealing is on hold until an operator has run a command; undefined if there is none.
 */
export async function restoreHold(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ hold: string | null }[]>`SELECT ${raw(HOLD_SQL)} AS hold`;
  return row?.hold ?? undefined;
}

/**
 * True if the stores have been recovered beyond the position with this id. A worker whose position file has
 * the id begins a new file.
 */
export async function isAccepted(sql: Sql, positionId: string): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM restored_positions WHERE position_id = ${positionId}::uuid AND accepted_at IS NOT NULL`;
  return rows.length > 0;
}
