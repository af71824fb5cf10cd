/**
 * The intents of adjustments: who wants to change which balance by how much and why, on record before anything happens.
 * An intent is decided once, in Redis (lua/adjust.lua). It is read together with the epoch that it is to be done under:
 * what is decided in one epoch is not known in the next, so whoever holds an intent of an earlier one must read it again.
 */

import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { arrayOf, safe } from '../../postgres/statements.js';
import { livesIn, NEWEST_MOVE } from './cells.store.js';

export interface Adjustment {
  readonly partnerId: number;
  readonly playerId: string;
  readonly requestId: string;
  /** Of either sign, not 0. */
  readonly amountMicros: number;
  readonly reason: string;
}

export interface Intent extends Adjustment {
  readonly intentId: number;
  readonly cell: number;
  /** Of the partner, when the intent was read. */
  readonly newestMove: number;
  /** The cell's epoch when the intent was read. */
  readonly epoch: string;
  /** It was made by this call. */
  readonly isNew: boolean;
  /** It is so old that Redis may have forgotten what came of it. */
  readonly isOld: boolean;
  /** Redis has forgotten nothing that came after this entry: otherwise the intent must be read again. */
  readonly runsReachId: bigint;
}

/** By so much may the clocks of the stores differ, milliseconds. */
export const CLOCKS_MS = 60_000;
/** An intent may be withdrawn between two statements; so often in a row it is not. */
const TRIES = 10;

/** Intents of adjustments. */
export class Adjustments {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Puts an intent on record, or finds the same one there.
   * @returns `reused` where the requestId stands for another adjustment.
   */
  async record(actor: string, wanted: Adjustment): Promise<Intent | 'reused'> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const intent = await recordOnce(this.#sql, actor, wanted);
      if (intent !== undefined) return intent;
    }
    throw new Error('The intent of an adjustment is withdrawn each time that it is looked for');
  }

  /**
   * Removes an intent that was refused, and says so in the audit log. Left where it is if the cell is at another epoch by
   * now, or the partner in another cell: then it may have been done there, for another caller.
   */
  async withdraw(actor: string, intent: Intent, refusal: string): Promise<void> {
    const { partnerId, playerId, requestId, amountMicros, reason } = intent;
    await this.#sql.begin(async (tx) => {
      // Held, so that no later epoch begins before the intent is gone.
      const held = await tx`
        SELECT 1 FROM cells WHERE cell = ${intent.cell}
          AND (SELECT dataset_id FROM installation) || ':' || epoch = ${intent.epoch} FOR SHARE`;
      if (held.length === 0 || !(await livesIn(tx, partnerId, intent.cell))) return;
      const removed = await tx`
        DELETE FROM adjustments WHERE partner_id = ${partnerId} AND request_id = ${requestId}
          AND intent_id = ${intent.intentId} RETURNING 1`;
      if (removed.length === 0) return;
      await writeAuditEntry(tx, {
        actor,
        action: 'player.adjust.refused',
        subject: `player:${partnerId}:${playerId}`,
        before: { requestId, amountMicros, reason },
        after: { refusal },
      });
    });
  }

  /** Gives an intent that lapsed in Redis the next number, unless it was withdrawn or numbered anew meanwhile. */
  async renumber({ partnerId, requestId, intentId }: Intent): Promise<void> {
    await this.#sql`
      UPDATE adjustments SET intent_id = DEFAULT
      WHERE partner_id = ${partnerId} AND request_id = ${requestId} AND intent_id = ${intentId}`;
  }
}

function recordOnce(sql: Sql, actor: string, wanted: Adjustment): Promise<Intent | 'reused' | undefined> {
  const { partnerId, playerId, requestId, amountMicros, reason } = wanted;
  return sql.begin(async (tx) => {
    const made = await tx`
      INSERT INTO adjustments (partner_id, request_id, player_id, amount_micros, reason)
      VALUES (${partnerId}, ${requestId}, ${playerId}, ${amountMicros}, ${reason})
      ON CONFLICT (partner_id, request_id) DO NOTHING RETURNING 1`;
    if (made.length > 0) {
      await writeAuditEntry(tx, {
        actor,
        action: 'player.adjust',
        subject: `player:${partnerId}:${playerId}`,
        after: { requestId, amountMicros, reason },
      });
    }
    // One statement: the epoch is that of the moment at which the intent is there.
    const [row] = await tx<
      {
        intent_id: bigint;
        player_id: string;
        amount_micros: bigint;
        reason: string;
        handed_over_id: bigint;
        is_old: boolean;
        cell: number;
        newest_move: number;
        token: string;
      }[]
    >`
      SELECT intent_id, player_id, amount_micros, reason, cell, ${NEWEST_MOVE}, dataset_id || ':' || epoch AS token,
        handed_over_id, extract(epoch FROM a.created_at) * 1000 < (handed_over_id >> 22) + ${CLOCKS_MS}
          OR a.created_at < now() - make_interval(secs => idempotency_seconds / 2) AS is_old
      FROM adjustments a JOIN partners USING (partner_id) JOIN cells USING (cell), installation
      WHERE partner_id = ${partnerId} AND request_id = ${requestId}`;
    if (row === undefined) return undefined;
    const isSame =
      row.player_id === playerId && row.amount_micros === BigInt(amountMicros) && row.reason === reason;
    if (!isSame) return 'reused' as const;
    return {
      ...wanted,
      intentId: safe(row.intent_id),
      cell: row.cell,
      newestMove: row.newest_move,
      epoch: row.token,
      isNew: made.length > 0,
      isOld: row.is_old,
      runsReachId: row.handed_over_id,
    };
  });
}

/** An adjustment that is booked. */
export interface CommittedAdjustment {
  readonly partnerId: number;
  readonly requestId: string;
  readonly entryId: bigint;
}

/** Writes down, in the transaction that books them, which entries adjustments are. */
export async function noteAdjustments(
  tx: Transaction,
  adjustments: readonly CommittedAdjustment[],
): Promise<void> {
  const rows = adjustments.map(({ partnerId, requestId, entryId }) => ({
    partner: partnerId,
    request: requestId,
    entry: String(entryId),
  }));
  await tx`
    UPDATE adjustments a SET entry_id = t.entry
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS t(partner int, request text, entry bigint)
    WHERE a.partner_id = t.partner AND a.request_id = t.request`;
}

/** What a partner's adjustments of a day come to. */
export interface AdjustmentDay {
  partnerId: number;
  day: string;
  adjustments: number;
  amountMicros: bigint;
}

export async function addAdjustmentDays(
  tx: Transaction,
  adjustments: readonly AdjustmentDay[],
): Promise<void> {
  await tx`
    INSERT INTO adjustment_days AS t (partner_id, day, adjustments, amount_micros)
    SELECT * FROM unnest(${arrayOf(adjustments.map((a) => a.partnerId))}::int[],
      ${arrayOf(adjustments.map((a) => a.day))}::date[], ${arrayOf(adjustments.map((a) => a.adjustments))}::bigint[],
      ${arrayOf(adjustments.map((a) => a.amountMicros))}::numeric[])
    ON CONFLICT (partner_id, day) DO UPDATE SET adjustments = t.adjustments + excluded.adjustments,
      amount_micros = t.amount_micros + excluded.amount_micros`;
}
