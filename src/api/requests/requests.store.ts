/** Finds the requests of partners and operators by their requestId. */
import type { Sql } from '../../postgres/connection.js';

const FOUND_MAX = 20;

export interface RequestedAdjustment {
  readonly playerId: string;
  readonly amountMicros: bigint;
  readonly reason: string;
  readonly requestedAt: Date;
  /** Ledger entry of the adjustment; null if it is not committed. */
  readonly entryId: bigint | null;
}

export interface RefusedAdjustment {
  readonly playerId: string;
  readonly amountMicros: bigint;
  readonly reason: string;
  readonly refusedAt: Date;
  readonly actor: string;
  readonly refusal: string;
}

export class Requests {
  constructor(private readonly sql: Sql) {}

  /** Returns the entries of the raffle tickets that a partner bought with a requestId, newest first. */
  async tickets(partnerId: number, requestId: string): Promise<bigint[]> {
    const rows = await this.sql<{ entryId: bigint }[]>`
      SELECT entry_id FROM games JOIN ticket_requests USING (game_id)
      WHERE partner_id = ${partnerId} AND request_id = ${requestId}
      ORDER BY entry_id DESC LIMIT ${FOUND_MAX}`;
    return rows.map(({ entryId }) => entryId);
  }

  /** Returns the adjustment that has a requestId; undefined if there is none or it was refused. */
  async adjustment(partnerId: number, requestId: string): Promise<RequestedAdjustment | undefined> {
    const [row] = await this.sql<RequestedAdjustment[]>`
      SELECT player_id, amount_micros, reason, created_at AS requested_at, entry_id FROM adjustments
      WHERE partner_id = ${partnerId} AND request_id = ${requestId}`;
    return row;
  }

  async refusedAdjustments(partnerId: number, requestId: string): Promise<RefusedAdjustment[]> {
    const subject = `player:${partnerId}:`;
    return this.sql<RefusedAdjustment[]>`
      SELECT substr(subject, ${subject.length + 1}::int) AS player_id, (before->>'amountMicros')::bigint AS amount_micros,
        before->>'reason' AS reason, at AS refused_at, actor, after->>'refusal' AS refusal
      FROM audit_log
      WHERE action = 'player.adjust.refused' AND starts_with(subject, ${subject}) AND before->>'requestId' = ${requestId}
      ORDER BY audit_id DESC LIMIT ${FOUND_MAX}`;
  }
}
