/**
 * SQL that counts the traffic of each hour, for charts. Flushes write daily totals only; an hour's traffic is
 * the growth of a partner's daily totals in that hour. Flushes thus have no additional cost, and the result
 * is accurate to within the time between two counts. A late commit counts in the hour of the commit.
 */

import type { Sql } from '../../postgres/connection.js';

const KEPT_DAYS = 35;
/**
 * Advisory lock that lets only one process count at a time, because two processes would count the same growth
 * twice.
 */
const COUNT_LOCK = 7_310_048;

/**
 * Adds the growth of yesterday's and today's totals since the last call to the current hour, and removes old
 * hours.
 */
export async function countTrafficHours(sql: Sql): Promise<void> {
  await sql.begin(async (tx) => {
    const [lock] = await tx<
      { isOurs: boolean }[]
    >`SELECT pg_try_advisory_xact_lock(${COUNT_LOCK}) AS is_ours`;
    if (!lock!.isOurs) return;
    await tx`
      WITH booked AS (
        SELECT partner_id, day, sum(spins) AS spins, sum(wagered_micros) AS wagered, sum(paid_micros) AS paid
        FROM game_days WHERE day >= (now() AT TIME ZONE 'UTC')::date - 1 GROUP BY partner_id, day
      ), counted AS (
        SELECT partner_id, (hour AT TIME ZONE 'UTC')::date AS day, sum(spins) AS spins,
          sum(wagered_micros) AS wagered, sum(paid_micros) AS paid
        FROM traffic_hours WHERE hour >= ((now() AT TIME ZONE 'UTC')::date - 1)::timestamp AT TIME ZONE 'UTC'
        GROUP BY 1, 2
      ), grown AS (
        SELECT partner_id, day, b.spins - coalesce(c.spins, 0) AS spins,
          b.wagered - coalesce(c.wagered, 0) AS wagered, b.paid - coalesce(c.paid, 0) AS paid
        FROM booked b LEFT JOIN counted c USING (partner_id, day)
      )
      INSERT INTO traffic_hours AS t (hour, partner_id, spins, wagered_micros, paid_micros)
      SELECT least(date_trunc('hour', now(), 'UTC'), (day::timestamp + interval '23 hours') AT TIME ZONE 'UTC'),
        partner_id, spins, wagered, paid
      FROM grown WHERE spins <> 0 OR wagered <> 0 OR paid <> 0
      ON CONFLICT (hour, partner_id) DO UPDATE SET spins = t.spins + excluded.spins,
        wagered_micros = t.wagered_micros + excluded.wagered_micros, paid_micros = t.paid_micros + excluded.paid_micros`;
    await tx`DELETE FROM traffic_hours WHERE hour < now() - make_interval(days => ${KEPT_DAYS})`;
  });
}
