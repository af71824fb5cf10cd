/**
 * Stores the intents of adjustments: who wants to change which balance, by how much and why. An intent is on
 * record before the balance changes.
 *
 * Redis decides each intent once (lua/adjust.lua). An intent is read together with the cell's epoch, under
 * which Redis must decide it. A later epoch does not know what an earlier epoch decided, so an intent that
 * was read under an earlier epoch must be read again.
 */

import { adjustmentOf, type CommittedAdjustment, type ReasonedAdjustment } from '../../domain/adjustment.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { rowsOf, safe, textArrayOf } from '../../postgres/statements.js';
import { type EntryRange, type FeedPage, feedPageOf } from '../ledger/feedPage.store.js';
import { findEntries } from '../ledger/ledgerEntries.store.js';
import { livesIn, NEWEST_MOVE } from './cells.store.js';

export interface Adjustment {
  readonly partnerId: number;
  readonly playerId: string;
  readonly requestId: string;
  /** Amount in micro-USD, positive or negative, never 0. */
  readonly amountMicros: number;
  readonly reason: string;
}

export interface Intent extends Adjustment {
  readonly intentId: number;
  readonly cell: number;
  /** Number of the partner's newest completed move to another cell, at the time the intent was read. */
  readonly newestMove: number;
  /** The cell's epoch at the time the intent was read. */
  readonly epoch: string;
  readonly isNew: boolean;
  /** True if the intent is so old that Redis may already have dropped its decision on the intent. */
  readonly isOld: boolean;
  /**
   * Entry of the cell after which Redis still has every request id that it bound. If request ids beyond this
   * entry have been released since, the intent must be read again.
   */
  readonly runsReachId: bigint;
}

/** Maximum difference between the clocks of Redis and Postgres, in ms. */
export const CLOCKS_MS = 60_000;
/**
 * Maximum number of attempts to record an intent. Another attempt is needed if the intent is withdrawn
 * between the insert and the read.
 */
const TRIES = 10;

export class Adjustments {
  constructor(private readonly sql: Sql) {}

  /**
   * Records an intent, or finds an identical intent that is already on record.
   * @returns `reused` if the request id already belongs to a different adjustment
   */
  async record(actor: string, wanted: Adjustment): Promise<Intent | 'reused'> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const intent = await recordOnce(this.sql, actor, wanted);
      if (intent !== undefined) return intent;
    }
    throw new Error('The intent of an adjustment was withdrawn again at every attempt to read it');
  }

  /**
   * Removes a refused intent and records the refusal in the audit log. If the cell has begun another epoch,
   * or the partner has moved to another cell, the intent is kept, because another caller may then have
   * carried it out.
   */
  async withdraw(actor: string, intent: Intent, refusal: string): Promise<void> {
    const { partnerId, playerId, requestId, amountMicros, reason } = intent;
    await this.sql.begin(async (tx) => {
      // Locks the cell's row, so that no later epoch begins before the intent is removed.
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

  /**
   * Reads one page of a partner's committed adjustments in the order of their entries, oldest first.
   *
   * @param limit maximum number of adjustments, at least 1
   */
  async byTime(range: EntryRange, limit: number): Promise<FeedPage<ReasonedAdjustment>> {
    const { partnerId } = range;
    const playerId = range.playerId ?? null;
    const page = await feedPageOf(this.sql, 'adjustments.entry_id', range, limit, {
      rowsOf: (fromId, toId, count) => this.sql<{ entryId: bigint; reason: string }[]>`
        SELECT entry_id, reason FROM adjustments
        WHERE partner_id = ${partnerId} AND entry_id >= ${fromId} AND entry_id < ${toId}
          AND (${playerId}::text IS NULL OR player_id = ${playerId})
        ORDER BY entry_id LIMIT ${count}`,
      idOf: (row) => row.entryId,
    });
    const entries = await findEntries(
      this.sql,
      page.items.map((row) => row.entryId),
    );
    const items = page.items.map(({ entryId, reason }) => {
      const entry = entries.get(entryId);
      if (entry === undefined) throw new Error(`The ledger has no entry ${entryId} of an adjustment`);
      return { ...adjustmentOf(entry), reason };
    });
    return { ...page, items };
  }

  /** Returns the adjustments among entries of one partner, with their reasons, in the same order. */
  async ofEntries(partnerId: number, entries: readonly LedgerEntry[]): Promise<ReasonedAdjustment[]> {
    const adjustments = entries.filter(({ kind }) => kind === 'adjustment').map(adjustmentOf);
    if (adjustments.length === 0) return [];
    const rows = await this.sql<{ requestId: string; reason: string }[]>`
      SELECT request_id, reason FROM adjustments WHERE partner_id = ${partnerId}
        AND request_id = ANY(${textArrayOf(adjustments.map(({ requestId }) => requestId))}::text[])`;
    const reasons = new Map(rows.map((row) => [row.requestId, row.reason]));
    return adjustments.map((adjustment) => ({
      ...adjustment,
      reason: reasons.get(adjustment.requestId)!,
    }));
  }

  /**
   * Gives an intent that lapsed in Redis the next number, unless it has been withdrawn or renumbered in the
   * meantime.
   */
  async renumber({ partnerId, requestId, intentId }: Intent): Promise<void> {
    await this.sql`
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
    // A single statement reads the intent and the epoch, so that the two values are from the same moment.
    const [row] = await tx<
      (Omit<Intent, 'intentId' | 'amountMicros' | 'isNew'> & Record<'intentId' | 'amountMicros', bigint>)[]
    >`
      SELECT intent_id, player_id, amount_micros, reason, cell, ${NEWEST_MOVE}, dataset_id || ':' || epoch AS epoch,
        handed_over_id AS runs_reach_id, extract(epoch FROM a.created_at) * 1000 < (handed_over_id >> 22) + ${CLOCKS_MS}
          OR a.created_at < now() - make_interval(secs => idempotency_seconds / 2) AS is_old
      FROM adjustments a JOIN partners USING (partner_id) JOIN cells USING (cell), installation
      WHERE partner_id = ${partnerId} AND request_id = ${requestId}`;
    if (row === undefined) return undefined;
    const isSame =
      row.playerId === playerId && row.amountMicros === BigInt(amountMicros) && row.reason === reason;
    if (!isSame) return 'reused' as const;
    return {
      ...row,
      ...wanted,
      intentId: safe(row.intentId),
      isNew: made.length > 0,
    };
  });
}

/** Records which ledger entry each adjustment made, in the transaction that commits these entries. */
export async function noteAdjustments(
  tx: Transaction,
  adjustments: readonly CommittedAdjustment[],
): Promise<ReasonedAdjustment[]> {
  const rows = adjustments.map(({ partnerId, requestId, entryId }) => ({
    partner: partnerId,
    request: requestId,
    entry: String(entryId),
  }));
  const noted = await tx<{ entryId: bigint; reason: string }[]>`
    UPDATE adjustments a SET entry_id = t.entry
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS t(partner int, request text, entry bigint)
    WHERE a.partner_id = t.partner AND a.request_id = t.request
    RETURNING a.entry_id, a.reason`;
  const reasons = new Map(noted.map((row) => [row.entryId, row.reason]));
  return adjustments.flatMap((adjustment) => {
    const reason = reasons.get(adjustment.entryId);
    return reason === undefined ? [] : [{ ...adjustment, reason }];
  });
}

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
    SELECT * FROM ${rowsOf(adjustments, { partnerId: 'int', day: 'date', adjustments: 'bigint', amountMicros: 'numeric' })}
    ON CONFLICT (partner_id, day) DO UPDATE SET adjustments = t.adjustments + excluded.adjustments,
      amount_micros = t.amount_micros + excluded.amount_micros`;
}
