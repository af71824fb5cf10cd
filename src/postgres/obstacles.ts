/** What stands against dealing from cells, in Postgres. */
import { raw, type Sql } from './client.js';
import { HOLD_SQL } from './positions.js';

export interface Obstacles {
  /** Why nothing is dealt until an operator has run a command (postgres/positions.ts); undefined: nothing stands against it. */
  readonly hold: string | undefined;
  /** Cells that lacked what was answered under their epoch, and were not prepared since. */
  readonly lacking: readonly number[];
}

export interface ObstaclesRow {
  readonly hold: string | null;
  readonly lacking: number[];
}

/** Two columns of a statement. */
export const OBSTACLES = raw(`${HOLD_SQL} AS hold,
      array(SELECT cell FROM answered_entries JOIN cells USING (cell, epoch) WHERE is_lacking ORDER BY cell) AS lacking`);

export const obstaclesOf = ({ hold, lacking }: ObstaclesRow): Obstacles => ({
  hold: hold ?? undefined,
  lacking,
});

/** Asked all the time: one statement. */
export async function findObstacles(sql: Sql): Promise<Obstacles> {
  const [row] = await sql.prepared<[ObstaclesRow]>`SELECT ${OBSTACLES}`;
  return obstaclesOf(row);
}
