/** Finds work that other processes may have left for a worker, with one statement that runs every second. */

import type { Sql } from '../../postgres/connection.js';
import { arrayOf } from '../../postgres/statements.js';
import { NEXT_DUE_MS } from '../../webhooks/deliveries.store.js';

export interface Work {
  /** True if a partner is moving out of one of the cells. */
  readonly hasMoves: boolean;
  /** True if a raffle of one of the cells is voided and its refunds are not complete. */
  readonly hasVoids: boolean;
  /** True if a cell may lack a recorded change of a player's status. */
  readonly hasPlayerStatuses: boolean;
  /** True if a round in one of the cells has expired. */
  readonly hasExpiredRounds: boolean;
  readonly hasDueEmails: boolean;
  /** Time until the first webhook delivery is due, in ms; null if none is waiting. */
  readonly deliveryMs: number | null;
  /**
   * True if an entry waits for the public log, or a tree of the log is not published. False while the log is
   * halted.
   */
  readonly isLogBehind: boolean;
  /**
   * Text that changes with the state of the public log: its size, its halt and its newest published
   * checkpoint.
   */
  readonly log: string;
}

export async function findWork(sql: Sql, cells: readonly number[]): Promise<Work> {
  const owned = arrayOf(cells);
  const [row] = await sql.prepared<[Work]>`
    SELECT EXISTS (SELECT FROM partner_moves WHERE finished_at IS NULL AND from_cell = ANY(${owned}::int[])) AS "hasMoves",
      EXISTS (SELECT FROM raffles JOIN games USING (game_id) JOIN partners USING (partner_id)
        WHERE voided_at IS NOT NULL AND refunds_done_at IS NULL AND cell = ANY(${owned}::int[])) AS "hasVoids",
      EXISTS (SELECT FROM player_status_intents JOIN partners USING (partner_id) WHERE cell = ANY(${owned}::int[])) AS "hasPlayerStatuses",
      EXISTS (SELECT FROM rounds JOIN partners USING (partner_id)
        WHERE rounds.status = 'OPEN' AND expires_at <= now() AND cell = ANY(${owned}::int[])) AS "hasExpiredRounds",
      EXISTS (SELECT FROM deliveries WHERE webhook_id IS NULL AND status = 'pending' AND next_attempt_at <= now()) AS "hasDueEmails",
      ${NEXT_DUE_MS} AS "deliveryMs",
      l.halt IS NULL AND (EXISTS (SELECT FROM log_entries WHERE log_index IS NULL)
        OR EXISTS (SELECT FROM log_notices WHERE log_index IS NULL) OR l.size > coalesce(c.size, 0)) AS "isLogBehind",
      concat_ws(' ', l.log_id, l.size, l.halt, l.is_held, c.size, md5(c.note)) AS log
    FROM (SELECT log_id, size, halt, is_held FROM logs ORDER BY log_id DESC LIMIT 1) l
    LEFT JOIN LATERAL (
      SELECT size, note FROM log_checkpoints WHERE log_id = l.log_id AND published_at IS NOT NULL ORDER BY size DESC LIMIT 1) c ON true`;
  return row;
}
