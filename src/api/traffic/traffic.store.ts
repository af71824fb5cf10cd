/** Reads the number of spins, wagers and payouts by day and by hour, of all partners or of one partner. */
import type { Sql } from '../../postgres/connection.js';

export interface Traffic {
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
}

export type TrafficDay = Traffic & { readonly day: string };

export type TrafficHour = Traffic & { readonly hour: Date };

export class TrafficReads {
  constructor(private readonly sql: Sql) {}

  /**
   * Returns the traffic of each of the last UTC days, oldest first.
   *
   * @param partnerId undefined: all partners
   */
  async days(days: number, partnerId: number | undefined): Promise<TrafficDay[]> {
    const of = partnerId ?? null;
    return this.sql<TrafficDay[]>`
      SELECT d.day::text AS day, coalesce(sum(spins), 0) AS spins,
        coalesce(sum(wagered_micros), 0) AS wagered_micros, coalesce(sum(paid_micros), 0) AS paid_micros
      FROM (SELECT (now() AT TIME ZONE 'UTC')::date - i AS day FROM generate_series(0, ${days}::int - 1) AS i) d
        LEFT JOIN game_days g ON g.day = d.day AND (${of}::int IS NULL OR partner_id = ${of})
      GROUP BY d.day ORDER BY d.day`;
  }

  hours(hours: number, partnerId: number | undefined): Promise<TrafficHour[]> {
    return trafficHours(this.sql, hours, partnerId);
  }
}

/**
 * Returns the traffic of the last hours, oldest first, including the current hour. Starts at the first
 * recorded hour if there are fewer hours.
 *
 * @param partnerId undefined: all partners
 */
async function trafficHours(sql: Sql, hours: number, partnerId: number | undefined): Promise<TrafficHour[]> {
  const of = partnerId ?? null;
  return sql<TrafficHour[]>`
    SELECT h.hour, coalesce(sum(spins), 0) AS spins, coalesce(sum(wagered_micros), 0) AS wagered_micros,
      coalesce(sum(paid_micros), 0) AS paid_micros
    FROM (SELECT date_trunc('hour', now(), 'UTC') - i * interval '1 hour' AS hour
          FROM generate_series(0, ${hours}::int - 1) AS i) h
      LEFT JOIN traffic_hours t ON t.hour = h.hour AND is_known AND (${of}::int IS NULL OR partner_id = ${of})
    WHERE h.hour >= (SELECT min(hour) FROM traffic_hours WHERE is_known)
    GROUP BY h.hour ORDER BY h.hour`;
}
