/**
 * Records the copies outside Postgres and Redis that this database knows of: the position file and the copy
 * of the public log. These copies prove whether the database was restored to an older state. A worker that
 * does not find a recorded copy does not deal until an operator decides.
 */
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { settlePositions } from './positionFindings.store.js';

/** Name of the setting that contains the path of a copy outside Postgres and Redis. */
export type CopySetting = 'POSITION_FILE' | 'LOG_COPY_DIR';

export const COPY_SETTINGS: readonly CopySetting[] = ['POSITION_FILE', 'LOG_COPY_DIR'];

export interface OutsideCopy {
  readonly setting: CopySetting;
  readonly path: string;
  /** Id of the position file, or origin of the log. */
  readonly copyId: string;
  /** The newest committed entry in the position file, or the number of records in the log. */
  readonly newest: bigint;
}

/**
 * Records in Postgres that a copy outside Postgres and Redis exists.
 * @param isBegun true if the process has just found or created the copy. If false, and an operator has
 * removed the record, no new record is made
 */
export async function noteCopy(
  sql: Sql,
  { setting, path, copyId, newest }: OutsideCopy,
  isBegun: boolean,
): Promise<void> {
  if (isBegun)
    await sql`
      INSERT INTO outside_copies (setting, path, copy_id, newest) VALUES (${setting}, ${path}, ${copyId}, ${newest})
      ON CONFLICT (setting) DO UPDATE
      SET path = excluded.path, copy_id = excluded.copy_id, newest = excluded.newest, noted_at = now(), missing = NULL`;
  else
    await sql`
      UPDATE outside_copies SET path = ${path}, copy_id = ${copyId}, newest = ${newest}, noted_at = now(), missing = NULL
      WHERE setting = ${setting}`;
}

/**
 * Removes the record of a copy outside Postgres and Redis. The caller has accounted for all outcomes and log
 * records that are newer than this database, or the operator gives up the copy.
 */
export async function forgetCopy(tx: Transaction, setting: CopySetting): Promise<OutsideCopy | undefined> {
  const [row] = await tx<{ path: string; copyId: string; newest: bigint }[]>`
    DELETE FROM outside_copies WHERE setting = ${setting} RETURNING path, copy_id, newest`;
  return row && { setting, path: row.path, copyId: row.copyId, newest: row.newest };
}

/**
 * Gives a copy up after an operator has stated that Postgres has its newest state: removes its record, and
 * settles everything that workers have found about it.
 * @param positionId id of the position file, if it differs from Postgres
 * @returns true if there was a record or a finding
 */
export async function giveCopyUp(sql: Sql, setting: CopySetting, positionId?: string): Promise<boolean> {
  return sql.begin(async (tx) => {
    const before = await forgetCopy(tx, setting);
    const settled = setting === 'POSITION_FILE' ? await settlePositions(tx, positionId) : 0;
    if (before === undefined && settled === 0) return false;
    await writeAuditEntry(tx, {
      actor: 'command',
      action: 'copy.give-up',
      subject: `copy:${setting}`,
      ...(before && { before: { path: before.path, copyId: before.copyId, newest: before.newest } }),
      ...(settled > 0 && { after: { settled } }),
    });
    return true;
  });
}

const WHAT = {
  POSITION_FILE: 'a position file and its newest committed entry:',
  LOG_COPY_DIR: 'a copy of the public log and its number of records:',
} as const;
const RESTORED = {
  POSITION_FILE: 'run `spindle recover --restored`',
  LOG_COPY_DIR:
    'run `spindle log import --from DIR|URL`, or `spindle log begin` if there is no copy of the log',
} as const;

export async function recordedCopies(sql: Sql): Promise<{ setting: CopySetting; path: string }[]> {
  return [...(await sql<{ setting: CopySetting; path: string }[]>`SELECT setting, path FROM outside_copies`)];
}

/**
 * Returns the copies that a worker did not find at its start, or could not read. Copies that have reappeared
 * since, or whose record was removed, are left out.
 */
export async function missingCopies(sql: Sql): Promise<CopySetting[]> {
  const rows = await sql<{ setting: CopySetting }[]>`
    SELECT setting FROM outside_copies WHERE missing IS NOT NULL ORDER BY setting`;
  return rows.map(({ setting }) => setting);
}

/**
 * Marks a recorded copy as missing.
 * @param place path at which the copy was expected; undefined if the setting is absent
 * @param damage why the copy can't be read; undefined if there is none
 * @returns the reason why dealing is not allowed without the copy, with the next step for the operator;
 * undefined if no such copy is on record
 */
export async function missingCopy(
  sql: Sql,
  setting: CopySetting,
  place: string | undefined,
  damage?: string,
): Promise<string | undefined> {
  const isUnreadable = damage !== undefined;
  const where =
    place === undefined
      ? `${setting} is not set`
      : isUnreadable
        ? `${setting} ${place} can't be read: ${damage}`
        : `${setting} ${place} is missing`;
  const next =
    `${isUnreadable ? 'Make it readable, or put an intact one in its place' : 'Put it back'}. ` +
    `If Postgres may have been restored, ${RESTORED[setting]}; otherwise ` +
    `run \`spindle recover --without ${setting}\`, which keeps everything and begins a new one`;
  const [row] = await sql<{ missing: string }[]>`
    UPDATE outside_copies
    SET is_unreadable = ${isUnreadable}, missing = concat(${where}::text, ', and Postgres has on record ', ${WHAT[setting]}::text, ' ', path, ' (', newest, '). ', ${next}::text)
    WHERE setting = ${setting} RETURNING missing`;
  return row?.missing;
}
