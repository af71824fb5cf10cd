/** Events: written in the transaction that books their cause, so that there is exactly one of each. */
import { randomBytes } from 'node:crypto';
import { eventBody, type NewEvent, SENT_TO_ALL } from '../domain/webhook.js';
import { arrayOf, type Transaction } from './client.js';

/** Attempts of a delivery, and of each time that it is sent again (docs/contract.md §13.2). */
export const ATTEMPTS_MAX = 5;

/** An id that nobody can guess and that begins with its time: 12 hexadecimal digits of it, 20 random ones. */
const newId = (prefix: string, timeMs: number): string =>
  prefix + timeMs.toString(16).padStart(12, '0') + randomBytes(10).toString('hex');

/**
 * Writes events down, each with one delivery for each webhook of its partner that wants it; what nobody wants is not
 * written. One short question where the partners have no webhooks.
 * @returns how many deliveries there are to make; the deliverer finds them, and sooner when it is woken after the commit.
 */
export async function recordEvents(tx: Transaction, events: readonly NewEvent[]): Promise<number> {
  if (events.length === 0) return 0;
  const partners = [...new Set(events.map(({ partnerId }) => partnerId))];
  const webhooks = await tx<{ webhook_id: number; partner_id: number; events: string[] }[]>`
    SELECT webhook_id, partner_id, events FROM webhooks
    WHERE partner_id = ANY(${arrayOf(partners)}::int[]) AND deleted_at IS NULL`;
  if (webhooks.length === 0) return 0;
  const records: { id: string; partner: number; event: string; body: string; at: string }[] = [];
  const deliveries: { id: string; event: string; webhook: number }[] = [];
  const nowMs = Date.now();
  for (const event of events) {
    const wanting = webhooks.filter(
      (webhook) =>
        webhook.partner_id === event.partnerId &&
        (SENT_TO_ALL.has(event.event) || webhook.events.includes(event.event)),
    );
    if (wanting.length === 0) continue;
    const id = newId('evt_', nowMs);
    const body = eventBody(id, event);
    records.push({
      id,
      partner: event.partnerId,
      event: event.event,
      body,
      at: event.createdAt.toISOString(),
    });
    for (const { webhook_id } of wanting) {
      deliveries.push({ id: newId('dlv_', nowMs), event: id, webhook: webhook_id });
    }
  }
  if (records.length === 0) return 0;
  await tx`
    INSERT INTO events (event_id, partner_id, event, body, created_at)
    SELECT id, partner, event, body, at
    FROM json_to_recordset(${JSON.stringify(records)}::json) AS e(id text, partner int, event text, body text, at timestamptz)`;
  await tx`
    INSERT INTO deliveries (delivery_id, webhook_id, event_id, max_attempts)
    SELECT id, webhook, event, ${ATTEMPTS_MAX}
    FROM json_to_recordset(${JSON.stringify(deliveries)}::json) AS d(id text, event text, webhook int)`;
  return deliveries.length;
}
