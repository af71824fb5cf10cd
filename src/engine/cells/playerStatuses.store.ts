/** The players that an operator has blocked, or has let play again: the source of what Redis has in their records. */
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
  /** Counts the changes of the player's status. */
  readonly change: number;
  readonly cell: number;
  /** Of the partner, at that moment. */
  readonly newestMove: number;
  /** The cell's epoch at that moment. */
  readonly epoch: string;
}

/** Blocked and excluded players. */
export class PlayerStatuses {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Puts a status on record, unless the same one with the same reason is there. @throws where there is no such partner. */
  record(
    actor: string,
    { partnerId, playerId, status, reason }: PlayerStatusChange,
  ): Promise<PlayerStatusOnRecord> {
    return this.#sql.begin(async (tx) => {
      // Held until the end: a rebuild that begins an epoch after this one finds the status on record.
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

/** Every player whose status was ever changed. */
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

/** What the audit asks. */
export interface PlayerStatusReads {
  playerStatuses(cell: number): ReturnType<typeof playerStatuses>;
}

export const openPlayerStatusReads = (sql: Sql): PlayerStatusReads => ({
  playerStatuses: (cell) => playerStatuses(sql, cell),
});
