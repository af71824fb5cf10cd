/** Reads from Postgres the reasons why nothing may be dealt from some or all cells. */

import type { Sql } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';
import { HOLD_SQL, RESTORED_SQL } from './positionFindings.store.js';

export interface MissingCopy {
  readonly message: string;
  /** True if the copy is there, but can't be read. */
  readonly isUnreadable: boolean;
}

export interface Obstacles {
  /**
   * Reason why dealing is on hold until an operator has run a command (positions.store.ts); undefined if
   * there is none.
   */
  readonly hold: string | undefined;
  /** What the position file proves, if another reason is in front of it in `hold`. */
  readonly alsoRestored: string | undefined;
  /**
   * Copies outside Postgres and Redis that a worker did not find or could not read at its start. That worker
   * does not deal (outsideCopies.store.ts).
   */
  readonly missingCopies: readonly MissingCopy[];
  /**
   * Cells whose Redis lacked entries that were answered under the current epoch. The list has only cells that
   * have not been prepared since.
   */
  readonly lacking: readonly number[];
}

export interface ObstaclesRow {
  readonly hold: string | null;
  readonly restored: string | null;
  readonly missingCopies: string[];
  readonly unreadableCopies: string[];
  readonly lacking: number[];
}

/** Select expressions for the three kinds of obstacles to dealing. */
export const OBSTACLES = raw(`${HOLD_SQL} AS hold, ${RESTORED_SQL} AS restored,
      array(SELECT missing FROM outside_copies WHERE NOT is_unreadable AND missing IS NOT NULL ORDER BY setting) AS missing_copies,
      array(SELECT missing FROM outside_copies WHERE is_unreadable AND missing IS NOT NULL ORDER BY setting) AS unreadable_copies,
      array(SELECT cell FROM answered_entries JOIN cells USING (cell, epoch) WHERE is_lacking ORDER BY cell) AS lacking`);

export const obstaclesOf = (row: ObstaclesRow): Obstacles => ({
  hold: row.hold ?? undefined,
  alsoRestored: row.restored === row.hold ? undefined : (row.restored ?? undefined),
  missingCopies: [
    ...row.missingCopies.map((message) => ({ message, isUnreadable: false })),
    ...row.unreadableCopies.map((message) => ({ message, isUnreadable: true })),
  ],
  lacking: row.lacking,
});

/** Reads the obstacles in a single statement, because they are polled continually. */
export async function findObstacles(sql: Sql): Promise<Obstacles> {
  const [row] = await sql.prepared<[ObstaclesRow]>`SELECT ${OBSTACLES}`;
  return obstaclesOf(row);
}
