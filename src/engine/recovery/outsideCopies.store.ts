/**
 * The copies outside both stores that this database knows of: the position file and the copy of the public log. A restored database
 * recognises by them that it is of an older state, so a worker that does not find one deals nothing until an operator decides.
 */
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';

/** The setting that names the copy's place. */
export type CopySetting = 'POSITION_FILE' | 'LOG_COPY_DIR';

export const COPY_SETTINGS: readonly CopySetting[] = ['POSITION_FILE', 'LOG_COPY_DIR'];

export interface OutsideCopy {
  readonly setting: CopySetting;
  readonly path: string;
  /** Id of the position file, or origin of the log. */
  readonly copyId: string;
  /** The newest booked entry in the position file, or the records of the log. */
  readonly newest: bigint;
}

/**
 * Puts a copy on record.
 * @param isBegun the process has just found or made the copy; otherwise a record that an operator has removed stays removed
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

/** Removes a copy from the record: what was dealt or published beyond this database is settled, or the operator gives the copy up. */
export async function forgetCopy(tx: Transaction, setting: CopySetting): Promise<OutsideCopy | undefined> {
  const [row] = await tx<{ path: string; copy_id: string; newest: bigint }[]>`
    DELETE FROM outside_copies WHERE setting = ${setting} RETURNING path, copy_id, newest`;
  return row && { setting, path: row.path, copyId: row.copy_id, newest: row.newest };
}

/** An operator states that Postgres is not of an older state, and gives a copy up. @returns whether it was on record */
export async function giveCopyUp(sql: Sql, setting: CopySetting): Promise<boolean> {
  return sql.begin(async (tx) => {
    const before = await forgetCopy(tx, setting);
    if (before === undefined) return false;
    const { path, copyId, newest } = before;
    await writeAuditEntry(tx, {
      actor: 'command',
      action: 'copy.give-up',
      subject: `copy:${setting}`,
      before: { path, copyId, newest },
    });
    return true;
  });
}

const WHAT = {
  POSITION_FILE: 'a position file up to a booked entry:',
  LOG_COPY_DIR: 'a copy of the public log up to a number of records:',
} as const;
const RESTORED = {
  POSITION_FILE: 'run `spindle recover --restored`',
  LOG_COPY_DIR:
    'run `spindle log import --from DIR|URL`, or `spindle log begin` where no copy of the log is left',
} as const;

/** Copies that a worker did not find at its start, and that neither came back nor were given up since. */
export async function missingCopies(sql: Sql): Promise<CopySetting[]> {
  const rows = await sql<{ setting: CopySetting }[]>`
    SELECT setting FROM outside_copies WHERE missing IS NOT NULL ORDER BY setting`;
  return rows.map(({ setting }) => setting);
}

/**
 * Notes that a copy is not there, where it is on record.
 * @param place where the copy was looked for; undefined: the setting is absent
 * @returns why nothing may be dealt without it, and how to go on; undefined: no such copy is on record
 */
export async function missingCopy(
  sql: Sql,
  setting: CopySetting,
  place: string | undefined,
): Promise<string | undefined> {
  const where = place === undefined ? `${setting} is not set` : `${setting} ${place} is missing`;
  const next =
    `put it back; where Postgres may have been restored, ${RESTORED[setting]}; where it was not, ` +
    `run \`spindle recover --without ${setting}\``;
  const [row] = await sql<{ missing: string }[]>`
    UPDATE outside_copies
    SET missing = concat(${where}::text, ', and Postgres has on record ', ${WHAT[setting]}::text, ' ', path, ' (', newest, '): ', ${next}::text)
    WHERE setting = ${setting} RETURNING missing`;
  return row?.missing;
}
