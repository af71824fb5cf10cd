/** Which days of which partners are settled: have a complete report that no incomplete one has overtaken. */

import type { Sql } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';

/** The day it was made, or that of its first spin where the clocks of the two stores differ around midnight. */
export const FIRST_DAY = raw(`least(
  (p.created_at AT TIME ZONE 'UTC')::date, (SELECT min(day) FROM game_days d WHERE d.partner_id = p.partner_id))`);

/**
 * A revision that is not complete came after the report `r`. Earlier versions made such revisions of complete days while Redis was away.
 */
export const IS_OVERTAKEN = raw(`EXISTS (SELECT 1 FROM settlement_reports n
  WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date AND n.revision > r.revision AND NOT n.is_complete)`);

export interface UnsettledDay {
  readonly partnerId: number;
  readonly date: string;
  /** There is a report, made before all of the day was in the ledger. */
  readonly hasReport: boolean;
  /** There is a complete report, too: all of the day is in the ledger. */
  readonly isBooked: boolean;
}

/**
 * Days from one to another (both with it) whose newest report is not complete, or that have none and should: the oldest first. Its time
 * grows with the number of days and partners; a caller asks for a month or so at a time.
 */
export async function unsettledDays(sql: Sql, from: string, through: string): Promise<UnsettledDay[]> {
  const rows = await sql<{ partner_id: number; date: string; has_report: boolean; is_booked: boolean }[]>`
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
  return rows.map((row) => ({
    partnerId: row.partner_id,
    date: row.date,
    hasReport: row.has_report,
    isBooked: row.is_booked,
  }));
}
