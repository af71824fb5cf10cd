/**
 * Queries that tell which days of which partners are settled. A day is settled if it has a complete report
 * without a later incomplete revision.
 */

import type { Sql } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';

/** Tables of daily totals by partner. */
const DAY_TABLES = ['game_days', 'sandbox_days', 'communal_days', 'opening_days', 'adjustment_days'];

/**
 * SQL for the first day of a partner: the day of its creation, or of its first ledger entry if that is
 * earlier. Postgres's clock dates a partner and Redis's clock its entries, so around midnight the first entry
 * may be of the day before.
 */
export const FIRST_DAY = raw(
  `least((p.created_at AT TIME ZONE 'UTC')::date, ${DAY_TABLES.map(
    (table) => `(SELECT min(day) FROM ${table} d WHERE d.partner_id = p.partner_id)`,
  ).join(', ')})`,
);

/**
 * SQL condition: an incomplete revision follows the report `r`. Earlier versions of the service generated
 * such revisions of complete days while Redis was unavailable.
 */
export const IS_OVERTAKEN = raw(`EXISTS (SELECT 1 FROM settlement_reports n
  WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date AND n.revision > r.revision AND NOT n.is_complete)`);

export interface UnsettledDay {
  readonly partnerId: number;
  readonly date: string;
  /**
   * True if the day has a report whose newest revision is incomplete, because the ledger did not have the
   * whole day when it was generated.
   */
  readonly hasReport: boolean;
  /** True if a complete report of the day exists too, which means that the whole day is committed. */
  readonly isBooked: boolean;
}

/**
 * Returns the days of an interval (both ends inclusive) that have no report or whose newest report is
 * incomplete, oldest first. The cost grows with days times partners, so callers request about a month at a
 * time.
 */
export async function unsettledDays(sql: Sql, from: string, through: string): Promise<UnsettledDay[]> {
  return sql<UnsettledDay[]>`
    SELECT p.partner_id, s.day::date::text AS date,
           EXISTS (SELECT 1 FROM settlement_reports r
                   WHERE r.partner_id = p.partner_id AND r.report_date = s.day::date) AS has_report,
           EXISTS (SELECT 1 FROM settlement_reports r
                   WHERE r.partner_id = p.partner_id AND r.report_date = s.day::date AND r.is_complete) AS is_booked
    FROM (SELECT partner_id, ${FIRST_DAY} AS first_day FROM partners p) p
      CROSS JOIN LATERAL generate_series(
        greatest(p.first_day, ${from}::date)::timestamp, ${through}::timestamp, interval '1 day') AS s(day)
    WHERE NOT EXISTS (SELECT 1 FROM settlement_reports r
                      WHERE r.partner_id = p.partner_id AND r.report_date = s.day::date AND r.is_complete
                        AND r.report_date BETWEEN ${from}::date AND ${through}::date AND NOT ${IS_OVERTAKEN})
    ORDER BY s.day, p.partner_id`;
}
