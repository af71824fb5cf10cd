/** Reads from Postgres the reasons why nothing may be dealt from some or all cells. */

import type { Sql } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';
import { HOLD_SQL } from './positions.store.js';

export interface Obstacles {
  /**
   * Reason why dealing is on hold until an operator has run a command (positions.store.ts); undefined if
   * there is none.
   */
  readonly hold: string | undefined;
  /**
   * Copies outside Postgres and Redis that a worker did not find at its start. That worker does not deal
   * (outsideCopies.store.ts). One reason for each copy.
   */
  readonly missingCopies: readonly string[];
  /**
   * Cells whose Redis lacked entries that were answered under the current epoch. The list has only cells that
   * have not been prepared since.
   */
  readonly lacking: readonly number[];
}

export interface ObstaclesRow {
  readonly hold: string | null;
  readonly missing_copies: string[];
  readonly lacking: number[];
}

/** Select expressions for the three kinds of obstacles to dealing. */
export const OBSTACLES = raw(`${HOLD_SQL} AS hold,
      array(SELECT missing FROM outside_copies WHERE missing IS NOT NULL ORDER BY setting) AS missing_copies,
      array(SELECT cell FROM answered_entries JOIN cells USING (cell, epoch) WHERE is_lacking ORDER BY cell) AS lacking`);

export const obstaclesOf = ({ hold, missing_copies: missingCopies, lacking }: ObstaclesRow): Obstacles => ({
  hold: hold ?? undefined,
  missingCopies,
  lacking,
});

/** Reads the obstacles in a single statement, because they are polled continually. */
export async function findObstacles(sql: Sql): Promise<Obstacles> {
  const [row] = await sql.prepared<[ObstaclesRow]>`SELECT ${OBSTACLES}`;
  return obstaclesOf(row);
}
