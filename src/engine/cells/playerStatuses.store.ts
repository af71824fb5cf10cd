/**
 * SQL of the players that an operator has blocked or unblocked. The status in Redis's player records is
 * derived from these rows.
 */
import type { PlayerStatus } from '../../domain/playerStatus.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { arrayOf, raw } from '../../postgres/statements.js';
import { inScope, NEWEST_MOVE, type PartnerScope } from './cells.store.js';

export interface PlayerOfPartner {
  readonly partnerId: number;
  readonly playerId: string;
}

export interface PlayerStatusChange extends PlayerOfPartner {
  readonly status: PlayerStatus;
  readonly reason: string;
}

export interface PlayerStatusOnRecord extends PlayerOfPartner {
  readonly status: PlayerStatus;
  readonly change: number;
  readonly cell: number;
  /** Number of the partner's newest completed move when the change was read. */
  readonly newestMove: number;
  /** The cell's epoch when the change was read. */
  readonly epoch: string;
}

const TOKEN = raw("(SELECT dataset_id FROM installation) || ':' || epoch");

interface OnRecordRow {
  readonly partnerId: number;
  readonly playerId: string;
  readonly status: PlayerStatus;
  readonly change: number;
  readonly cell: number;
  readonly newestMove: number;
  readonly token: string;
}

const onRecord = (row: OnRecordRow): PlayerStatusOnRecord => ({
  partnerId: row.partnerId,
  playerId: row.playerId,
  status: row.status,
  change: row.change,
  cell: row.cell,
  newestMove: row.newestMove,
  epoch: row.token,
});

export class PlayerStatuses {
  constructor(private readonly sql: Sql) {}

  /**
   * Records a player's status, unless the same status and reason are already on record. The change stays an
   * intent until {@link carriedOut} or {@link withdraw}.
   * @throws Error if the partner does not exist
   */
  record(
    actor: string,
    { partnerId, playerId, status, reason }: PlayerStatusChange,
  ): Promise<PlayerStatusOnRecord> {
    return this.sql.begin(async (tx) => {
      // The row lock lasts until the commit, so a rebuild that begins a later epoch finds the status on
      // record.
      const [row] = await tx`
        SELECT 1 FROM partners JOIN cells USING (cell) WHERE partner_id = ${partnerId} FOR SHARE OF cells`;
      if (row === undefined) throw new Error(`There is no partner ${partnerId}`);
      const made = await tx`
        INSERT INTO player_statuses AS s (partner_id, player_id, status, reason, change)
        VALUES (${partnerId}, ${playerId}, ${status}, ${reason}, 1)
        ON CONFLICT (partner_id, player_id) DO UPDATE
          SET status = excluded.status, reason = excluded.reason, change = s.change + 1, changed_at = now()
          WHERE (s.status, s.reason) <> (excluded.status, excluded.reason)
        RETURNING 1`;
      const recorded = (await find(tx, partnerId, playerId))!;
      if (made.length > 0) {
        await tx`
          INSERT INTO player_status_intents (partner_id, player_id, change)
          VALUES (${partnerId}, ${playerId}, ${recorded.change})
          ON CONFLICT (partner_id, player_id) DO UPDATE SET change = excluded.change`;
        await writeAuditEntry(tx, {
          actor,
          action: 'player.status',
          subject: `player:${partnerId}:${playerId}`,
          after: { status, reason },
        });
      }
      return recorded;
    });
  }

  /** Reads the newest recorded change of a player, with the cell and epoch that the player has now. */
  async newest({ partnerId, playerId }: PlayerOfPartner): Promise<PlayerStatusOnRecord | undefined> {
    return find(this.sql, partnerId, playerId);
  }

  /** Reads changes that the given cells may not have yet, at most `limit` for each cell. */
  async intents(cells: readonly number[], limit: number): Promise<PlayerStatusOnRecord[]> {
    const rows = await this.sql<OnRecordRow[]>`
      SELECT i.* FROM unnest(${arrayOf(cells)}::int[]) AS c(cell) CROSS JOIN LATERAL (
        SELECT partner_id, player_id, status, s.change, cell, ${NEWEST_MOVE}, ${TOKEN} AS token
        FROM player_status_intents JOIN player_statuses s USING (partner_id, player_id)
          JOIN partners USING (partner_id) JOIN cells USING (cell)
        WHERE cell = c.cell LIMIT ${limit}) AS i`;
    return rows.map(onRecord);
  }

  /** Records that a cell has a change, and so all earlier changes of the player. */
  async carriedOut({ partnerId, playerId, change }: PlayerStatusOnRecord): Promise<void> {
    await this.sql`
      DELETE FROM player_status_intents
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND change <= ${change}`;
  }

  /**
   * Resets the status of a player that the cell does not know, unless a later change is on record. The audit
   * log records the reset of a block.
   */
  async withdraw(
    actor: string,
    { partnerId, playerId, change }: PlayerStatusOnRecord,
    reason: string,
  ): Promise<void> {
    await this.sql.begin(async (tx) => {
      const reset = await tx`
        UPDATE player_statuses SET status = 'ACTIVE', reason = ${reason}, change = change + 1, changed_at = now()
        WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND change = ${change} AND status <> 'ACTIVE'
        RETURNING 1`;
      await tx`
        DELETE FROM player_status_intents
        WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND change <= ${change}`;
      if (reset.length === 0) return;
      await writeAuditEntry(tx, {
        actor,
        action: 'player.status',
        subject: `player:${partnerId}:${playerId}`,
        after: { status: 'ACTIVE', reason },
      });
    });
  }
}

async function find(
  sql: Sql | Transaction,
  partnerId: number,
  playerId: string,
): Promise<PlayerStatusOnRecord | undefined> {
  const [row] = await sql<OnRecordRow[]>`
    SELECT partner_id, player_id, status, change, cell, ${NEWEST_MOVE}, ${TOKEN} AS token
    FROM player_statuses JOIN partners USING (partner_id) JOIN cells USING (cell)
    WHERE partner_id = ${partnerId} AND player_id = ${playerId}`;
  return row && onRecord(row);
}

/** Returns every player whose status has ever been changed. */
export async function playerStatuses(
  sql: Sql | Transaction,
  scope: PartnerScope,
): Promise<Omit<PlayerStatusOnRecord, 'cell' | 'newestMove' | 'epoch'>[]> {
  return sql<Omit<PlayerStatusOnRecord, 'cell' | 'newestMove' | 'epoch'>[]>`
    SELECT partner_id, player_id, status, change
    FROM player_statuses JOIN partners USING (partner_id) WHERE ${inScope(scope)}`;
}

export interface PlayerStatusReads {
  playerStatuses(cell: number): ReturnType<typeof playerStatuses>;
}

export const openPlayerStatusReads = (sql: Sql): PlayerStatusReads => ({
  playerStatuses: (cell) => playerStatuses(sql, cell),
});
