/**
 * Events for partners and the operator. An event is written in the transaction of its cause, so that each
 * cause has exactly one event.
 */
import { randomBytes } from 'node:crypto';
import { EMAILED_TO_PARTNER } from '../domain/email.js';
import { parseExactJson } from '../domain/exactJson.js';
import {
  type EventData,
  eventBody,
  IN_FEED,
  type NewEvent,
  type OperatorEvent,
  operatorEventBody,
  SAMPLE_DATA,
  SENT_TO_ALL,
  type SubscribedEventType,
} from '../domain/webhook.js';
import type { Sql, Transaction } from './connection.js';
import { arrayOf } from './statements.js';

/**
 * Maximum number of attempts for a delivery. The attempts are counted anew each time that the delivery is
 * sent again by request (docs/contract.md §13.2).
 */
export const ATTEMPTS_MAX = 5;

/**
 * Generates an id that can't be guessed and begins with the time of its generation: 12 hexadecimal digits of
 * the time and 20 random ones.
 */
const newId = (prefix: string, timeMs: number): string =>
  prefix + timeMs.toString(16).padStart(12, '0') + randomBytes(10).toString('hex');

/**
 * Records events, each with a delivery for each subscribed webhook of its partner, and a delivery for its
 * e-mail if it has one. Events of the event feed are recorded even without a delivery.
 * @returns the number of deliveries. The deliverer finds the deliveries by itself, but sooner if it is woken
 * after the commit.
 */
export async function recordEvents(tx: Transaction, events: readonly NewEvent[]): Promise<number> {
  if (events.length === 0) return 0;
  const partners = arrayOf([...new Set(events.map(({ partnerId }) => partnerId))]);
  const webhooks = await tx<{ webhookId: number; partnerId: number; events: string[] }[]>`
    SELECT webhook_id, partner_id, events FROM webhooks
    WHERE partner_id = ANY(${partners}::int[]) AND deleted_at IS NULL AND is_active`;
  const contacts = await contactsOf(tx, events, partners);
  const byPartner = new Map<number, typeof webhooks>();
  for (const webhook of webhooks)
    byPartner.set(webhook.partnerId, [...(byPartner.get(webhook.partnerId) ?? []), webhook]);
  const records: { id: string; partner: number; event: string; body: string; at: string }[] = [];
  const deliveries: { id: string; event: string; webhook: number | null; recipient: string | null }[] = [];
  const nowMs = Date.now();
  for (const event of events) {
    const wanting = (byPartner.get(event.partnerId) ?? []).filter(
      (webhook) => SENT_TO_ALL.has(event.event) || webhook.events.includes(event.event),
    );
    const recipient =
      event.recipient ??
      (EMAILED_TO_PARTNER.has(event.event) && event.isEmailed !== false
        ? contacts.get(event.partnerId)
        : undefined) ??
      null;
    if (wanting.length === 0 && recipient === null && !IN_FEED.includes(event.event)) continue;
    const id = newId('evt_', nowMs);
    records.push({
      id,
      partner: event.partnerId,
      event: event.event,
      body: eventBody(id, event),
      at: event.createdAt.toISOString(),
    });
    for (const { webhookId } of wanting)
      deliveries.push({ id: newId('dlv_', nowMs), event: id, webhook: webhookId, recipient: null });
    if (recipient !== null)
      deliveries.push({ id: newId('dlv_', nowMs), event: id, webhook: null, recipient });
  }
  if (records.length === 0) return 0;
  // Each event takes its position in the feed of its partner when the transaction that records it commits.
  // The fixed order of partners avoids deadlocks between transactions.
  records.sort((one, other) => one.partner - other.partner);
  await tx`
    INSERT INTO events (event_id, partner_id, event, body, created_at)
    SELECT id, partner, event, body, at
    FROM json_to_recordset(${JSON.stringify(records)}::json) AS e(id text, partner int, event text, body text, at timestamptz)`;
  if (deliveries.length === 0) return 0;
  await tx`
    INSERT INTO deliveries (delivery_id, webhook_id, recipient, event_id, max_attempts, created_at)
    SELECT id, webhook, recipient, event, ${ATTEMPTS_MAX}, ${new Date(nowMs)}
    FROM json_to_recordset(${JSON.stringify(deliveries)}::json)
      AS d(id text, event text, webhook int, recipient text)`;
  return deliveries.length;
}

/** Records an e-mail to the operator about an event that partners don't get. */
export async function recordOperatorEmail<Type extends OperatorEvent>(
  tx: Transaction,
  event: Type,
  data: EventData[Type],
  recipient: string,
): Promise<void> {
  const now = new Date();
  const id = newId('evt_', now.getTime());
  await tx`
    INSERT INTO events (event_id, partner_id, event, body, created_at)
    VALUES (${id}, NULL, ${event}, ${operatorEventBody(id, event, now, data)}, ${now})`;
  await tx`
    INSERT INTO deliveries (delivery_id, webhook_id, recipient, event_id, max_attempts, created_at)
    VALUES (${newId('dlv_', now.getTime())}, NULL, ${recipient}, ${id}, ${ATTEMPTS_MAX}, ${now})`;
}

/** Reads the e-mail addresses to which these events are sent, by partner. */
async function contactsOf(
  tx: Transaction,
  events: readonly NewEvent[],
  partners: string,
): Promise<ReadonlyMap<number, string>> {
  if (!events.some(({ event }) => EMAILED_TO_PARTNER.has(event))) return new Map();
  const rows = await tx<{ partnerId: number; contactEmail: string }[]>`
    SELECT partner_id, contact_email FROM partners
    WHERE partner_id = ANY(${partners}::int[]) AND contact_email IS NOT NULL`;
  return new Map(rows.map(({ partnerId, contactEmail }) => [partnerId, contactEmail]));
}

export class PartnerEvents {
  constructor(private readonly sql: Sql) {}

  /**
   * Records an event with sample data for one webhook.
   * @returns undefined if the webhook is inactive or deleted
   */
  async recordTest(
    partnerId: number,
    webhookId: number,
    event: SubscribedEventType,
    now: Date,
  ): Promise<{ eventId: string; deliveryId: string } | undefined> {
    const eventId = newId('evt_', now.getTime());
    const deliveryId = newId('dlv_', now.getTime());
    const made = { event, partnerId, createdAt: now, data: SAMPLE_DATA[event] } as NewEvent;
    const recorded = await this.sql`
      WITH active AS (
        SELECT webhook_id FROM webhooks
        WHERE webhook_id = ${webhookId} AND partner_id = ${partnerId} AND deleted_at IS NULL AND is_active FOR SHARE
      ), recorded AS (
        INSERT INTO events (event_id, partner_id, event, body, created_at)
        SELECT ${eventId}, ${partnerId}::int, ${event}, ${eventBody(eventId, made, true)}, ${now}::timestamptz FROM active
        RETURNING event_id, created_at
      )
      INSERT INTO deliveries (delivery_id, webhook_id, event_id, max_attempts, created_at)
      SELECT ${deliveryId}, webhook_id, event_id, ${ATTEMPTS_MAX}::int, created_at FROM active, recorded RETURNING 1`;
    return recorded.length === 0 ? undefined : { eventId, deliveryId };
  }

  /**
   * Reads events of a partner after a given event, in the order of their commits, so that no event can later
   * appear before an event that was already returned.
   * @returns undefined if the given event does not exist
   */
  async feed(
    partnerId: number,
    after: string | undefined,
    limit: number,
  ): Promise<{ events: unknown[]; nextCursor: string | null } | undefined> {
    let place = '0';
    if (after !== undefined) {
      const [row] = await this.sql<{ place: string }[]>`
        SELECT place::text AS place FROM events WHERE event_id = ${after} AND partner_id = ${partnerId}`;
      if (row === undefined) return undefined;
      place = row.place;
    }
    const rows = await this.sql<{ eventId: string; body: string }[]>`
      SELECT event_id, body FROM events
      WHERE partner_id = ${partnerId} AND place > ${place}::bigint AND NOT is_test
        AND event = ANY(${arrayOf(IN_FEED)}::text[]) AND created_at > now() - ${FEED_DAYS} * interval '24 hours'
      ORDER BY place LIMIT ${limit + 1}`;
    const page = rows.slice(0, limit);
    return {
      events: page.map(({ body }) => parseExactJson(body)),
      nextCursor: rows.length > limit ? page.at(-1)!.eventId : null,
    };
  }
}

const FEED_DAYS = 30;
