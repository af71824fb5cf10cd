/**
 * SQL of the players that an operator has blocked or unblocked. The status in Redis's player records is
 * derived from these rows.
 */
import type { PlayerStatus } from '../../domain/playerStatus.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { inScope, NEWEST_MOVE, type PartnerScope } from './cells.store.js';

export interface PlayerStatusChange {
  readonly partnerId: number;
  readonly playerId: string;
  readonly status: PlayerStatus;
  readonly reason: string;
}

export interface PlayerStatusOnRecord {
  readonly partnerId: number;
  readonly playerId: string;
  readonly status: PlayerStatus;
  /** Number of this change of status, counted per player. */
  readonly change: number;
  readonly cell: number;
  /** Number of the partner's newest completed move, at the time of the change of status. */
  readonly newestMove: number;
  /** The cell's epoch at the time of the change of status. */
  readonly epoch: string;
}

export class PlayerStatuses {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Records a player's status, unless the same status and reason are already on record.
   * @throws Error if the partner does not exist
   */
  record(
    actor: string,
    { partnerId, playerId, status, reason }: PlayerStatusChange,
  ): Promise<PlayerStatusOnRecord> {
    return this.#sql.begin(async (tx) => {
      // The row lock lasts until the commit, so a rebuild that begins a later epoch finds the status on
      // record.
      const [row] = await tx<{ cell: number; newest_move: number; token: string }[]>`
        SELECT cell, ${NEWEST_MOVE}, (SELECT dataset_id FROM installation) || ':' || epoch AS token
        FROM partners JOIN cells USING (cell) WHERE partner_id = ${partnerId} FOR SHARE OF cells`;
      if (row === undefined) throw new Error(`There is no partner ${partnerId}`);
      const made = await tx<{ change: number }[]>`
        INSERT INTO player_statuses AS s (partner_id, player_id, status, reason, change)
        VALUES (${partnerId}, ${playerId}, ${status}, ${reason}, 1)
        ON CONFLICT (partner_id, player_id) DO UPDATE
          SET status = excluded.status, reason = excluded.reason, change = s.change + 1, changed_at = now()
          WHERE (s.status, s.reason) <> (excluded.status, excluded.reason)
        RETURNING change`;
      if (made.length > 0) {
        await writeAuditEntry(tx, {
          actor,
          action: 'player.status',
          subject: `player:${partnerId}:${playerId}`,
          after: { status, reason },
        });
      }
      const [{ change }] = (made.length > 0
        ? made
        : await tx`SELECT change FROM player_statuses WHERE partner_id = ${partnerId} AND player_id = ${playerId}`) as unknown as [
        { change: number },
      ];
      return {
        partnerId,
        playerId,
        status,
        change,
        cell: row.cell,
        newestMove: row.newest_move,
        epoch: row.token,
      };
    });
  }
}

/** Returns every player whose status has ever been changed. */
export async function playerStatuses(
  sql: Sql | Transaction,
  scope: PartnerScope,
): Promise<Omit<PlayerStatusOnRecord, 'cell' | 'newestMove' | 'epoch'>[]> {
  const rows = await sql<{ partner_id: number; player_id: string; status: PlayerStatus; change: number }[]>`
    SELECT partner_id, player_id, status, change
    FROM player_statuses JOIN partners USING (partner_id) WHERE ${inScope(scope)}`;
  return rows.map((row) => ({
    partnerId: row.partner_id,
    playerId: row.player_id,
    status: row.status,
    change: row.change,
  }));
}

/** Queries with which the audit checks player statuses. */
export interface PlayerStatusReads {
  playerStatuses(cell: number): ReturnType<typeof playerStatuses>;
}

export const openPlayerStatusReads = (sql: Sql): PlayerStatusReads => ({
  playerStatuses: (cell) => playerStatuses(sql, cell),
});
