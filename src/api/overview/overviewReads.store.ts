/** What operators look at beyond one partner: traffic, reports and deliveries of all partners, cells and recoveries. Bounded lists. */

import type { Static } from '#typebox';
import { IS_ANSWERED } from '../../books/settlement/settlements.store.js';
import type { WithDates } from '../../domain/schema.js';
import type { ReportStatus } from '../../domain/settlement.js';
import type { Traffic } from '../../engine/ledger/trafficHours.store.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';
import { missingWitnesses } from '../../publicLog/log/witnesses.store.js';
import {
  DELIVERIES_LISTED_MAX,
  type DeliveryRow,
  deliveryOf,
  type FailingWebhook,
  failingWebhooks,
  NEXT_ATTEMPT,
  type StoredDelivery,
} from '../../webhooks/webhooks.store.js';
import type { Recovery as RecoverySchema } from '../cells/contract.js';
import type { SpinBlock as SpinBlockSchema } from '../spins/contract.js';
import type { OperatorDelivery as OperatorDeliverySchema } from '../webhooks/contract.js';
import type { Attention as AttentionSchema } from './contract.js';

/** Partners that have a line of their own in the traffic of a day. */
const BUSIEST = 10;
/** A list counts no further. */
const COUNTED_MAX = 10_000;
const RECOVERIES_LISTED = 50;

export interface DayTraffic {
  readonly all: Traffic & { readonly partners: number };
  /** Those that spun most, the busiest first. */
  readonly busiest: readonly (Traffic & { readonly partnerId: number; readonly slug: string })[];
}

/** What waits for somebody to look at it. */
type Attention = Readonly<Static<typeof AttentionSchema>>;

export interface CellRow {
  readonly cell: number;
  readonly epoch: bigint;
  /** The worker that writes it; null: none does. */
  readonly owner: string | null;
  readonly cursorId: bigint;
  readonly halted: string | null;
  /** It takes no new partners. */
  readonly isDraining: boolean;
  readonly partners: number;
  readonly games: number;
}

export type RecoveryRow = WithDates<typeof RecoverySchema, 'startedAt' | 'finishedAt'>;

export type ListedDelivery = WithDates<
  typeof OperatorDeliverySchema,
  'createdAt' | 'lastAttemptAt' | 'nextAttemptAt'
>;

export interface ListedReport {
  readonly partnerId: number;
  readonly slug: string;
  readonly reportDate: string;
  readonly revision: number;
  readonly status: ReportStatus;
  readonly totalSpins: bigint;
  readonly ggrUsd: string;
  readonly disputeReason: string | null;
}

export type TrafficDay = Traffic & { readonly day: string };

export type BlockRow = WithDates<typeof SpinBlockSchema, 'createdAt'>;

/** What the console shows across aggregates. */
export class OverviewReads {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** What the ledger has of the UTC day that is now. */
  async trafficToday(): Promise<DayTraffic> {
    const rows = await this.#sql<
      {
        partner_id: number;
        slug: string;
        spins: bigint;
        wagered: bigint;
        paid: bigint;
        all_spins: bigint;
        all_wagered: bigint;
        all_paid: bigint;
        partners: bigint;
      }[]
    >`
      SELECT partner_id, slug, spins, wagered, paid, sum(spins) OVER () AS all_spins, sum(wagered) OVER () AS all_wagered,
        sum(paid) OVER () AS all_paid, count(*) OVER () AS partners
      FROM (SELECT partner_id, sum(spins) AS spins, sum(wagered_micros) AS wagered, sum(paid_micros) AS paid
            FROM game_days WHERE day = (now() AT TIME ZONE 'UTC')::date GROUP BY partner_id) t
        JOIN partners USING (partner_id)
      ORDER BY spins DESC, partner_id LIMIT ${BUSIEST}`;
    const [first] = rows;
    return {
      all: {
        spins: first?.all_spins ?? 0n,
        wageredMicros: first?.all_wagered ?? 0n,
        paidMicros: first?.all_paid ?? 0n,
        partners: safe(first?.partners ?? 0n),
      },
      busiest: rows.map((row) => ({
        partnerId: row.partner_id,
        slug: row.slug,
        spins: row.spins,
        wageredMicros: row.wagered,
        paidMicros: row.paid,
      })),
    };
  }

  /** What waits for somebody to look at it, and the webhooks that have failed for longest. */
  async attention(): Promise<{ attention: Attention; failingWebhooks: readonly FailingWebhook[] }> {
    const failing = await failingWebhooks(this.#sql);
    const missing = await missingWitnesses(this.#sql);
    const [row] = await this.#sql<
      (Record<
        | 'failed'
        | 'late'
        | 'disputed'
        | 'halted'
        | 'recoveries'
        | 'reviews'
        | 'suspended'
        | 'stopped'
        | 'expiring',
        bigint
      > & { dealing: boolean })[]
    >`
      SELECT
        (SELECT count(*) FROM (
           SELECT 1 FROM webhooks w JOIN deliveries d USING (webhook_id)
           WHERE w.deleted_at IS NULL AND is_active AND status = 'pending'
             AND next_attempt_at < now() - interval '5 minutes' LIMIT ${COUNTED_MAX}) l) AS late,
        (SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE status = 'failed' LIMIT ${COUNTED_MAX}) f) AS failed,
        (SELECT count(*) FROM settlement_reports r WHERE status = 'DISPUTED' AND NOT ${IS_ANSWERED} AND NOT EXISTS (
           SELECT 1 FROM settlement_reports n WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date
             AND n.revision > r.revision AND n.status = 'DISPUTED')) AS disputed,
        (SELECT count(*) FROM cells WHERE halted IS NOT NULL) AS halted,
        (SELECT count(*) FROM recoveries JOIN cells USING (cell, epoch) WHERE finished_at IS NULL) AS recoveries,
        (SELECT count(*) FROM rtp_reviews WHERE closed_at IS NULL) AS reviews,
        (SELECT count(*) FROM games JOIN partners USING (partner_id) WHERE status = 'SUSPENDED' AND is_active) AS suspended,
        (SELECT count(*) FROM partners WHERE NOT is_dealing AND is_active) AS stopped,
        (SELECT count(*) FROM api_keys JOIN partners USING (partner_id) WHERE revoked_at IS NULL AND is_active
           AND expires_at > now() AND expires_at < now() + interval '14 days') AS expiring,
        (SELECT is_on FROM dealing) AS dealing`;
    const attention: Attention = {
      failedDeliveries: safe(row!.failed),
      lateDeliveries: safe(row!.late),
      failingWebhooks: failing.count,
      disputedReports: safe(row!.disputed),
      haltedCells: safe(row!.halted),
      openRecoveries: safe(row!.recoveries),
      openReviews: safe(row!.reviews),
      suspendedGames: safe(row!.suspended),
      stoppedPartners: safe(row!.stopped),
      expiringKeys: safe(row!.expiring),
      missingWitnesses: missing,
      dealing: row!.dealing ? 'ON' : 'OFF',
    };
    return { attention, failingWebhooks: failing.longest };
  }

  /** Every cell, with the worker whose lease of it is in force. */
  async cells(): Promise<CellRow[]> {
    const rows = await this.#sql<
      {
        cell: number;
        epoch: bigint;
        owner: string | null;
        cursor_id: bigint;
        halted: string | null;
        is_draining: boolean;
        partners: bigint;
        games: bigint;
      }[]
    >`
      SELECT cell, epoch, CASE WHEN lease_until > now() THEN owner END AS owner, cursor_id, halted, is_draining,
        coalesce(partners, 0) AS partners, coalesce(games, 0) AS games
      FROM cells LEFT JOIN (
        SELECT cell, count(*) AS partners, sum(games)::bigint AS games
        FROM partners LEFT JOIN (SELECT partner_id, count(*) AS games FROM games GROUP BY partner_id) g USING (partner_id)
        GROUP BY cell
      ) p USING (cell) ORDER BY cell`;
    return rows.map(({ cursor_id, is_draining, partners, games, ...row }) => ({
      ...row,
      cursorId: cursor_id,
      isDraining: is_draining,
      partners: safe(partners),
      games: safe(games),
    }));
  }

  /** The newest recoveries, newest first. */
  async newestRecoveries(): Promise<RecoveryRow[]> {
    const rows = await this.#sql<
      {
        cell: number;
        epoch: bigint;
        reason: string;
        step: string;
        voided: bigint;
        started_at: Date;
        finished_at: Date | null;
      }[]
    >`
      SELECT cell, epoch, reason, step, voided, started_at, finished_at FROM recoveries
      ORDER BY started_at DESC, cell LIMIT ${RECOVERIES_LISTED}`;
    return rows.map((row) => ({
      cell: row.cell,
      epoch: safe(row.epoch),
      reason: row.reason,
      step: row.step,
      voidedOutcomes: safe(row.voided),
      startedAt: row.started_at,
      finishedAt: row.finished_at,
    }));
  }

  /** A page of the deliveries of all partners with a status, the newest attempts first. */
  async deliveries(
    { status, partnerId = null }: { status: DeliveryRow['status']; partnerId?: number | null },
    page: number,
    limit: number,
  ): Promise<{ deliveries: ListedDelivery[]; total: number }> {
    const offset = (page - 1) * limit;
    const listed = Math.max(0, Math.min(limit, DELIVERIES_LISTED_MAX - offset));
    const rows = await this.#sql<
      (StoredDelivery & {
        partner_id: number;
        webhook_id: number;
        url: string;
        body: string;
        last_error: string | null;
      })[]
    >`
      SELECT delivery_id, w.partner_id, webhook_id, url, body, event, d.status, d.attempts, max_attempts, d.created_at,
        last_attempt_at, ${NEXT_ATTEMPT}, response_status, d.last_error
      FROM deliveries d JOIN webhooks w USING (webhook_id) JOIN events USING (event_id)
        LEFT JOIN webhook_endpoints USING (webhook_id)
      WHERE d.status = ${status} AND (${partnerId}::int IS NULL OR w.partner_id = ${partnerId})
      ORDER BY last_attempt_at DESC NULLS LAST, delivery_id DESC
      LIMIT ${listed} OFFSET ${Math.min(offset, DELIVERIES_LISTED_MAX)}`;
    const [count] = await this.#sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM deliveries d JOIN webhooks w USING (webhook_id)
        WHERE d.status = ${status} AND (${partnerId}::int IS NULL OR w.partner_id = ${partnerId})
        LIMIT ${DELIVERIES_LISTED_MAX}) c`;
    return {
      deliveries: rows.map((row) => ({
        ...deliveryOf(row),
        partnerId: row.partner_id,
        webhookId: row.webhook_id,
        url: row.url,
        body: row.body,
        lastError: row.last_error,
      })),
      total: safe(count!.total),
    };
  }

  /**
   * A page of the newest revision of every report of all partners, newest day first; of the status DISPUTED those whose dispute is open,
   * also where a worker has completed the report since.
   */
  async reports(
    status: ReportStatus | undefined,
    page: number,
    limit: number,
  ): Promise<{ reports: ListedReport[]; total: number }> {
    const isListed =
      status === 'DISPUTED'
        ? raw(`NOT EXISTS (
        SELECT 1 FROM settlement_reports n
        WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date AND n.revision > r.revision
          AND (n.ends_dispute OR n.status IN ('ACKNOWLEDGED', 'DISPUTED')))`)
        : raw(`NOT EXISTS (
        SELECT 1 FROM settlement_reports n
        WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date AND n.revision > r.revision)`);
    const rows = await this.#sql<
      {
        partner_id: number;
        slug: string;
        report_date: string;
        revision: number;
        status: ReportStatus;
        total_spins: bigint;
        ggr_usd: string;
        dispute_reason: string | null;
      }[]
    >`
      SELECT partner_id, slug, report_date::text AS report_date, revision, status,
        (report->>'totalSpins')::numeric AS total_spins, report->>'ggrUsd' AS ggr_usd, dispute_reason
      FROM settlement_reports r JOIN partners USING (partner_id)
      WHERE status = coalesce(${status ?? null}::text, status) AND ${isListed}
      ORDER BY r.report_date DESC, partner_id LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.#sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM settlement_reports r
        WHERE status = coalesce(${status ?? null}::text, status) AND ${isListed}
        LIMIT ${COUNTED_MAX}) c`;
    return {
      reports: rows.map((row) => ({
        partnerId: row.partner_id,
        slug: row.slug,
        reportDate: row.report_date,
        revision: row.revision,
        status: row.status,
        totalSpins: row.total_spins,
        ggrUsd: row.ggr_usd,
        disputeReason: row.dispute_reason,
      })),
      total: safe(count!.total),
    };
  }

  /** Days on which a game was played, the newest first. */
  async gameDays(gameId: number, limit: number): Promise<TrafficDay[]> {
    const rows = await this.#sql<{ day: string; spins: bigint; wagered: bigint; paid: bigint }[]>`
      SELECT day::text AS day, spins, wagered_micros AS wagered, paid_micros AS paid FROM game_days
      WHERE game_id = ${gameId} ORDER BY day DESC LIMIT ${limit}`;
    return rows.map((row) => ({
      day: row.day,
      spins: row.spins,
      wageredMicros: row.wagered,
      paidMicros: row.paid,
    }));
  }

  /** The sealed block that an outcome of a game stood in; undefined where it is gone. */
  async blockOf(gameId: number, outcomeIndex: number): Promise<BlockRow | undefined> {
    const [row] = await this.#sql<
      { from_index: bigint; to_index: bigint; commitment: string; created_at: Date }[]
    >`
      SELECT from_index, to_index, encode(commitment, 'hex') AS commitment, created_at FROM blocks
      WHERE game_id = ${gameId} AND from_index <= ${outcomeIndex} AND to_index > ${outcomeIndex}
      ORDER BY from_index DESC LIMIT 1`;
    if (row === undefined) return undefined;
    const { from_index, to_index, commitment, created_at: createdAt } = row;
    return { fromIndex: safe(from_index), toIndex: safe(to_index), commitment, createdAt };
  }
}
