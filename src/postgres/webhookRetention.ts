/** Removes what is left of webhook events that ended long ago, a bounded number of rows at a time. */
import type { Sql } from './client.js';

const ROWS_MAX = 1000;

/**
 * Removes deliveries and e-mails that ended so many days ago, sent or not, those that wait for a webhook which was deleted so long ago, and events of
 * that age that no delivery needs.
 * @returns how many rows were removed; 0: nothing is left to remove.
 */
export async function removeEndedDeliveries(sql: Sql, days: number): Promise<number> {
  const ended = await sql<{ delivery_id: string }[]>`
    DELETE FROM deliveries WHERE delivery_id IN (
      SELECT delivery_id FROM deliveries
      WHERE status <> 'pending' AND coalesce(last_attempt_at, created_at) < now() - make_interval(days => ${days})
      ORDER BY coalesce(last_attempt_at, created_at) LIMIT ${ROWS_MAX})
    RETURNING delivery_id`;
  const orphaned = await sql<{ delivery_id: string }[]>`
    DELETE FROM deliveries WHERE delivery_id IN (
      SELECT delivery_id FROM deliveries d JOIN webhooks w USING (webhook_id)
      WHERE status = 'pending' AND w.deleted_at < now() - make_interval(days => ${days}) LIMIT ${ROWS_MAX})
    RETURNING delivery_id`;
  // An event's id begins with its time.
  const events = await sql<{ event_id: string }[]>`
    DELETE FROM events WHERE event_id IN (
      SELECT event_id FROM events e
      WHERE event_id < 'evt_' || lpad(to_hex((extract(epoch FROM now() - make_interval(days => ${days})) * 1000)::bigint), 12, '0')
        AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.event_id)
      ORDER BY event_id LIMIT ${ROWS_MAX})
    RETURNING event_id`;
  await sql`
    DELETE FROM webhook_hosts h WHERE minute < extract(epoch FROM now() - make_interval(days => ${days})) / 60
      AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.host = h.host AND w.partner_id = h.partner_id AND deleted_at IS NULL)`;
  await sql`
    DELETE FROM webhook_endpoints e USING webhooks w
    WHERE w.webhook_id = e.webhook_id AND w.deleted_at < now() - make_interval(days => ${days})`;
  return ended.length + orphaned.length + events.length;
}
