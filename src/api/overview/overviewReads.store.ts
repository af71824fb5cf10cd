/** Reads the figures of the overview: today's traffic, and the number of items that need attention. */

import type { Static } from '#typebox';
import { IS_ANSWERED } from '../../books/settlement/settlements.store.js';
import type { Sql } from '../../postgres/connection.js';
import { missingWitnesses } from '../../publicLog/log/witnesses.store.js';
import { type FailingWebhook, failingWebhooks } from '../../webhooks/webhooks.store.js';
import type { Traffic } from '../traffic/traffic.store.js';
import type { Attention as AttentionSchema, TrafficYesterday } from './contract.js';

/** Number of partners that get a line of their own in the traffic of a day. */
const BUSIEST = 10;
/** Highest count that the overview reports. Counting stops at this number. */
const COUNTED_MAX = 10_000;
/** Maximum number of games below their reserve whose queue is looked at. */
const LOW_GAMES_MAX = 100;

interface Totals {
  readonly allSpins: bigint;
  readonly allWagered: bigint;
  readonly allPaid: bigint;
  readonly partners: number;
}

export interface DayTraffic {
  readonly all: Traffic & { readonly partners: number };
  readonly busiest: readonly (Traffic & { readonly partnerId: number; readonly slug: string })[];
}

/** Traffic of the previous day, and where it ends. */
export type Yesterday = Traffic & Pick<Static<typeof TrafficYesterday>, 'until'>;

type Attention = Readonly<Omit<Static<typeof AttentionSchema>, 'dryGames'>>;

export class OverviewReads {
  constructor(private readonly sql: Sql) {}

  async trafficToday(): Promise<DayTraffic> {
    const rows = await this.sql<(DayTraffic['busiest'][number] & Totals)[]>`
      SELECT partner_id, slug, spins, wagered_micros, paid_micros, sum(spins) OVER () AS all_spins,
        sum(wagered_micros) OVER () AS all_wagered, sum(paid_micros) OVER () AS all_paid, (count(*) OVER ())::int AS partners
      FROM (SELECT partner_id, sum(spins) AS spins, sum(wagered_micros) AS wagered_micros, sum(paid_micros) AS paid_micros
            FROM game_days WHERE day = (now() AT TIME ZONE 'UTC')::date GROUP BY partner_id) t
        JOIN partners USING (partner_id)
      ORDER BY spins DESC, partner_id LIMIT ${BUSIEST}`;
    const [first] = rows;
    return {
      all: {
        spins: first?.allSpins ?? 0n,
        wageredMicros: first?.allWagered ?? 0n,
        paidMicros: first?.allPaid ?? 0n,
        partners: first?.partners ?? 0,
      },
      busiest: rows,
    };
  }

  /**
   * Returns the committed traffic of the previous UTC day up to the present time of day, with a share of the
   * hour in which it ends. If the stored hours are not those of the whole day, returns the whole day.
   */
  async trafficYesterday(): Promise<Yesterday> {
    const [row] = await this.sql<[Yesterday]>`
      WITH whole AS (
        SELECT coalesce(sum(spins), 0) AS spins, coalesce(sum(wagered_micros), 0) AS wagered,
          coalesce(sum(paid_micros), 0) AS paid
        FROM game_days WHERE day = (now() AT TIME ZONE 'UTC')::date - 1
      ), hours AS (
        SELECT spins, wagered_micros, paid_micros,
          greatest(0, least(1, extract(epoch FROM now() - interval '24 hours' - hour) / 3600)) AS share
        FROM traffic_hours
        WHERE is_known AND hour >= date_trunc('day', now(), 'UTC') - interval '24 hours'
          AND hour < date_trunc('day', now(), 'UTC')
      ), part AS (
        SELECT coalesce(sum(spins), 0) AS counted, coalesce(sum(floor(spins * share)), 0) AS spins,
          coalesce(sum(floor(wagered_micros * share)), 0) AS wagered,
          coalesce(sum(floor(paid_micros * share)), 0) AS paid
        FROM hours
      )
      SELECT CASE WHEN counted = whole.spins THEN part.spins ELSE whole.spins END AS spins,
        CASE WHEN counted = whole.spins THEN part.wagered ELSE whole.wagered END AS wagered_micros,
        CASE WHEN counted = whole.spins THEN part.paid ELSE whole.paid END AS paid_micros,
        CASE WHEN counted = whole.spins THEN 'SAME_TIME' ELSE 'END_OF_DAY' END AS until
      FROM whole, part`;
    return row;
  }

  /**
   * Returns the active games that are below their reserve or never had it, except raffles, which have none.
   * The first games have been so for the longest time.
   */
  async lowGames(): Promise<readonly { readonly partnerId: number; readonly gameId: number }[]> {
    return this.sql<readonly { readonly partnerId: number; readonly gameId: number }[]>`
      SELECT g.partner_id, g.game_id FROM games g JOIN partners USING (partner_id) LEFT JOIN block_reserves r USING (game_id)
      WHERE g.game_type <> 'raffle' AND g.status = 'ACTIVE' AND is_active AND coalesce(r.is_low, true)
      ORDER BY r.since NULLS FIRST, g.game_id LIMIT ${LOW_GAMES_MAX}`;
  }

  async attention(): Promise<{ attention: Attention; failingWebhooks: readonly FailingWebhook[] }> {
    const failing = await failingWebhooks(this.sql);
    const missing = await missingWitnesses(this.sql);
    const [row] = await this.sql<[Omit<Attention, 'failingWebhooks' | 'missingWitnesses'>]>`
      SELECT
        (SELECT count(*) FROM (
           SELECT 1 FROM webhooks w JOIN deliveries d USING (webhook_id)
           WHERE w.deleted_at IS NULL AND is_active AND status = 'pending'
             AND next_attempt_at < now() - interval '5 minutes' LIMIT ${COUNTED_MAX}) l)::int AS late_deliveries,
        (SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE status = 'failed' LIMIT ${COUNTED_MAX}) f)::int AS failed_deliveries,
        (SELECT count(*) FROM settlement_reports r WHERE status = 'DISPUTED' AND NOT ${IS_ANSWERED} AND NOT EXISTS (
           SELECT 1 FROM settlement_reports n WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date
             AND n.revision > r.revision AND n.status = 'DISPUTED'))::int AS disputed_reports,
        (SELECT count(*) FROM cells WHERE halted IS NOT NULL)::int AS halted_cells,
        (SELECT count(*) FROM recoveries JOIN cells USING (cell, epoch) WHERE finished_at IS NULL)::int AS open_recoveries,
        (SELECT count(*) FROM rtp_reviews WHERE closed_at IS NULL)::int AS open_reviews,
        (SELECT count(*) FROM communal_pots p JOIN communal_rules USING (game_id, version) JOIN games USING (game_id)
           JOIN partners USING (partner_id)
         WHERE is_active AND (rules ->> 'enabled')::boolean AND budget_micros < (
           SELECT min((tier ->> 'amountMicros')::bigint) FROM json_array_elements(rules -> 'tiers') AS t(tier)))::int AS exhausted_progressives,
        (SELECT count(*) FROM games JOIN partners USING (partner_id) WHERE status = 'SUSPENDED' AND is_active)::int AS suspended_games,
        (SELECT count(*) FROM partners WHERE NOT is_dealing AND is_active)::int AS stopped_partners,
        (SELECT count(*) FROM api_keys JOIN partners USING (partner_id) WHERE revoked_at IS NULL AND is_active
           AND expires_at > now() AND expires_at < now() + interval '14 days')::int AS expiring_keys,
        (SELECT CASE WHEN is_on THEN 'ON' ELSE 'OFF' END FROM dealing) AS dealing`;
    const attention = { ...row, failingWebhooks: failing.count, missingWitnesses: missing };
    return { attention, failingWebhooks: failing.longest };
  }
}
