/**
 * What was played in each hour, for charts. Flushes keep days only: an hour is what the days of a partner's games grew by in it.
 * So it costs flushes nothing, and is right to within the time between two turns; what is booked late counts where it is booked.
 */

import type { Sql } from '../../postgres/connection.js';

const KEPT_DAYS = 35;
/** No two processes count at a time: each would count the same growth. */
const COUNT_LOCK = 7_310_048;

/** Plays and money of an hour. */
export type TrafficHour = Traffic & { readonly hour: Date };

/** Adds what yesterday and today grew by since the last time to the current hour, and forgets old hours. */
export async function countTrafficHours(sql: Sql): Promise<void> {
  await sql.begin(async (tx) => {
    const [lock] = await tx<
      { is_ours: boolean }[]
    >`SELECT pg_try_advisory_xact_lock(${COUNT_LOCK}) AS is_ours`;
    if (!lock!.is_ours) return;
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

/**
 * The last hours, oldest first, the current one too, from the first that is known on.
 * @param partnerId undefined: of all partners
 */
export async function trafficHours(
  sql: Sql,
  hours: number,
  partnerId: number | undefined,
): Promise<TrafficHour[]> {
  const of = partnerId ?? null;
  const rows = await sql<{ hour: Date; spins: bigint; wagered: bigint; paid: bigint }[]>`
    SELECT h.hour, coalesce(sum(spins), 0) AS spins, coalesce(sum(wagered_micros), 0) AS wagered,
      coalesce(sum(paid_micros), 0) AS paid
    FROM (SELECT date_trunc('hour', now(), 'UTC') - i * interval '1 hour' AS hour
          FROM generate_series(0, ${hours}::int - 1) AS i) h
      LEFT JOIN traffic_hours t ON t.hour = h.hour AND is_known AND (${of}::int IS NULL OR partner_id = ${of})
    WHERE h.hour >= (SELECT min(hour) FROM traffic_hours WHERE is_known)
    GROUP BY h.hour ORDER BY h.hour`;
  return rows.map(({ hour, spins, wagered, paid }) => ({
    hour,
    spins,
    wageredMicros: wagered,
    paidMicros: paid,
  }));
}

export interface Traffic {
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
}
