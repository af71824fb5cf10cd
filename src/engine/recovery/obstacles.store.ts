/** What stands against dealing from cells, in Postgres. */

import type { Sql } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';
import { HOLD_SQL } from './positions.store.js';

export interface Obstacles {
  /** Why nothing is dealt until an operator has run a command (positions.store.ts); undefined: nothing stands against it. */
  readonly hold: string | undefined;
  /** Copies outside both stores that a worker did not find at its start: it deals nothing (outsideCopies.store.ts). */
  readonly missingCopies: string | undefined;
  /** Cells that lacked what was answered under their epoch, and were not prepared since. */
  readonly lacking: readonly number[];
}

export interface ObstaclesRow {
  readonly hold: string | null;
  readonly missing_copies: string | null;
  readonly lacking: number[];
}

/** Three columns of a statement. */
export const OBSTACLES = raw(`${HOLD_SQL} AS hold,
      (SELECT string_agg(missing, '; then: ' ORDER BY setting) FROM outside_copies) AS missing_copies,
      array(SELECT cell FROM answered_entries JOIN cells USING (cell, epoch) WHERE is_lacking ORDER BY cell) AS lacking`);

export const obstaclesOf = ({ hold, missing_copies: missingCopies, lacking }: ObstaclesRow): Obstacles => ({
  hold: hold ?? undefined,
  missingCopies: missingCopies ?? undefined,
  lacking,
});

/** Asked all the time: one statement. */
export async function findObstacles(sql: Sql): Promise<Obstacles> {
  const [row] = await sql.prepared<[ObstaclesRow]>`SELECT ${OBSTACLES}`;
  return obstaclesOf(row);
}
