/** The newest entry of each cell that was answered (cells/answeredMarks.ts writes it): what Redis must have, whoever was started again. */
import type { CellLease } from './cells.js';
import { arrayOf, type Sql } from './client.js';

export interface AnsweredEntry {
  readonly cell: number;
  /** Number of the epoch that it was made under. */
  readonly epoch: bigint;
  readonly entryId: bigint;
  /** The cell lacked it when a front end called. */
  readonly isLacking: boolean;
}

/** Notes what was answered; what is older than what is known says nothing. */
export async function noteAnswered(sql: Sql, entries: readonly AnsweredEntry[]): Promise<void> {
  await sql`
    INSERT INTO answered_entries AS a (cell, epoch, entry_id, is_lacking)
    SELECT * FROM unnest(${arrayOf(entries.map(({ cell }) => cell))}::int[],
      ${arrayOf(entries.map(({ epoch }) => epoch))}::bigint[], ${arrayOf(entries.map(({ entryId }) => entryId))}::bigint[],
      ${arrayOf(entries.map(({ isLacking }) => Number(isLacking)))}::int[]::boolean[]) ORDER BY 1
    ON CONFLICT (cell) DO UPDATE SET epoch = excluded.epoch, entry_id = excluded.entry_id,
      is_lacking = excluded.is_lacking OR (a.epoch = excluded.epoch AND a.is_lacking)
    WHERE (excluded.epoch, excluded.entry_id) > (a.epoch, a.entry_id)
      OR (excluded.epoch, excluded.entry_id) = (a.epoch, a.entry_id) AND excluded.is_lacking`;
}

/** The newest entry of a cell that was answered under its epoch; 0 where none is known. */
export async function answeredUnder(sql: Sql, { cell, epoch }: CellLease): Promise<bigint> {
  const [row] = await sql<{ entry_id: bigint }[]>`
    SELECT entry_id FROM answered_entries WHERE cell = ${cell} AND epoch = ${epoch}`;
  return row?.entry_id ?? 0n;
}

/** The owner of a cell has seen that Redis has what was answered. */
export async function clearLacking(sql: Sql, { cell, epoch }: CellLease): Promise<void> {
  await sql`
    UPDATE answered_entries SET is_lacking = false WHERE cell = ${cell} AND epoch <= ${epoch} AND is_lacking`;
}

/** What stands against dealing from cells, in Postgres. */
export interface Obstacles {
  /** Why nothing is dealt until `spindle recover --restored` has run (postgres/positions.ts); undefined: nothing stands against it. */
  readonly hold: string | undefined;
  /** Cells that lacked what was answered under their epoch, and were not prepared since. */
  readonly lacking: readonly number[];
}

/** Asked all the time: one statement. */
export async function findObstacles(sql: Sql): Promise<Obstacles> {
  const [row] = await sql<{ hold: string | null; lacking: number[] }[]>`
    SELECT (SELECT reason FROM restored_positions WHERE accepted_at IS NULL ORDER BY found_at LIMIT 1) AS hold,
      array(SELECT cell FROM answered_entries JOIN cells USING (cell, epoch) WHERE is_lacking ORDER BY cell) AS lacking`;
  return { hold: row?.hold ?? undefined, lacking: row?.lacking ?? [] };
}
