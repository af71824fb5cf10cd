/** Webhooks in Postgres: endpoints, secrets and deliveries, and the removal of old deliveries. */

import type { WithDates } from '../domain/schema.js';
import type { SecretBox } from '../domain/secretBox.js';
import type {
  Delivery as DeliverySchema,
  EndpointHealth as EndpointHealthSchema,
  Webhook as WebhookSchema,
} from '../domain/webhook.js';
import type { Run, Sql } from '../postgres/connection.js';
import { raw, safe } from '../postgres/statements.js';
import { CONCURRENCY_LIMITS, type ConcurrencyLimit } from './deliveries.store.js';

/** Maximum number of deliveries that a list covers and counts. */
export const DELIVERIES_LISTED_MAX = 10_000;

export type WebhookRow = WithDates<typeof WebhookSchema, 'createdAt'>;

interface Row {
  webhookId: number;
  url: string;
  events: string[];
  isActive: boolean;
  createdAt: Date;
}

const fromRow = (row: Row): WebhookRow => ({
  id: row.webhookId,
  url: row.url,
  events: row.events,
  isActive: row.isActive,
  createdAt: row.createdAt,
});

export type EndpointHealth = WithDates<typeof EndpointHealthSchema, 'failingSince' | 'restsUntil'>;

export type ListedWebhook = WebhookRow & { readonly health: EndpointHealth };

/**
 * Row of `webhooks` with its endpoint state and the number of waiting deliveries, as selected by {@link
 * WITH_HEALTH}.
 */
interface HealthRow extends Row {
  failingSince: Date | null;
  deactivatedAt: Date | null;
  notBefore: Date | null;
  lastError: string | null;
  pending: bigint;
  limitedBy: ConcurrencyLimit | null;
}

/** Selects webhooks `w` with the columns of {@link HealthRow}; a WHERE or JOIN clause follows. */
const WITH_HEALTH = raw(`
  w.webhook_id, w.url, w.events, w.is_active, w.created_at, failing_since, deactivated_at, last_error,
  CASE WHEN not_before > now() THEN not_before END AS not_before, pending, limited_by
  FROM webhooks w LEFT JOIN webhook_endpoints USING (webhook_id)
  LEFT JOIN ${CONCURRENCY_LIMITS.text} limits USING (partner_id, webhook_id) CROSS JOIN LATERAL (
    SELECT count(*) AS pending FROM (
      SELECT 1 FROM deliveries d WHERE d.webhook_id = w.webhook_id AND status = 'pending'
      LIMIT ${DELIVERIES_LISTED_MAX}) c) waiting`);

const healthOf = (row: HealthRow): EndpointHealth => {
  const { isActive, failingSince, deactivatedAt, lastError, notBefore, pending, limitedBy } = row;
  const isFailing = failingSince !== null;
  const failure = lastError ?? 'the last attempt failed';
  const inactive =
    deactivatedAt === null ? 'set inactive' : `every delivery failed for five days, at last with: ${failure}`;
  return {
    state: !isActive ? 'inactive' : isFailing ? 'failing' : 'ok',
    reason: !isActive ? inactive : isFailing ? failure : null,
    failingSince,
    pending: safe(pending),
    limitedBy,
    restsUntil: isActive ? notBefore : null,
  };
};

export type FailingWebhook = ListedWebhook & { readonly partnerId: number; readonly slug: string };

/**
 * Time, in seconds, for which a webhook must have been failing before this is reported. A retry usually ends
 * shorter failures.
 */
const FAILING_FOR = raw("interval '5 minutes'");
/** Maximum number of failing webhooks that are listed. */
const FAILING_NAMED = 10;

/**
 * Returns the webhooks of all partners that fail or that the service has deactivated.
 * @returns `count` is the number of those that have failed for minutes; `longest` are those that have failed
 * longest, also those that have just begun to fail
 */
export async function failingWebhooks(sql: Sql): Promise<{ count: number; longest: FailingWebhook[] }> {
  const rows = await sql<(HealthRow & { partnerId: number; slug: string; total: bigint })[]>`
    SELECT slug, partner_id, total, ${WITH_HEALTH}
    JOIN (
      SELECT webhook_id, count(*) FILTER (WHERE NOT is_active OR failing_since < now() - ${FAILING_FOR}) OVER () AS total
      FROM webhooks
      WHERE deleted_at IS NULL AND CASE WHEN is_active THEN failing_since IS NOT NULL ELSE deactivated_at IS NOT NULL END
      ORDER BY failing_since, webhook_id LIMIT ${FAILING_NAMED}
    ) named USING (webhook_id) JOIN partners USING (partner_id)
    ORDER BY failing_since, webhook_id`;
  return {
    count: safe(rows[0]?.total ?? 0n),
    longest: rows.map((row) => ({
      ...fromRow(row),
      health: healthOf(row),
      partnerId: row.partnerId,
      slug: row.slug,
    })),
  };
}

export type DeliveryRow = WithDates<typeof DeliverySchema, 'createdAt' | 'lastAttemptAt' | 'nextAttemptAt'>;

export class Webhooks {
  constructor(private readonly sql: Sql) {}

  /** @returns undefined if the partner has reached its maximum number of webhooks */
  async create(webhook: {
    partnerId: number;
    url: string;
    events: readonly string[];
    secret: string;
  }): Promise<WebhookRow | undefined> {
    const { partnerId, url, events, secret } = webhook;
    return this.sql.begin(async (tx) => {
      // The lock serializes the registrations of a partner, so that the limit holds.
      const [cap] = await tx<{ max: number }[]>`
        SELECT max_webhooks AS max FROM partners WHERE partner_id = ${partnerId} FOR NO KEY UPDATE`;
      const [row] = await tx<Row[]>`
        INSERT INTO webhooks (partner_id, url, host, events, secret)
        SELECT ${partnerId}::int, ${url}, ${new URL(url).hostname}, ${events}::text[], ${secret}
        WHERE (SELECT count(*) FROM webhooks WHERE partner_id = ${partnerId} AND deleted_at IS NULL) < ${cap!.max}
        RETURNING webhook_id, url, events, is_active, created_at`;
      return row === undefined ? undefined : fromRow(row);
    });
  }

  /** Returns the webhooks of a partner, except deleted ones. */
  async list(partnerId: number): Promise<ListedWebhook[]> {
    const rows = await this.sql<HealthRow[]>`
      SELECT ${WITH_HEALTH} WHERE partner_id = ${partnerId} AND deleted_at IS NULL ORDER BY webhook_id`;
    return rows.map((row) => ({ ...fromRow(row), health: healthOf(row) }));
  }

  /**
   * Returns whether a webhook belongs to a partner: `found`, `missing` (also if it was deleted) or `foreign`.
   */
  async state(partnerId: number, webhookId: number): Promise<'found' | 'missing' | 'foreign'> {
    const [row] = await this.sql<{ partnerId: number; deletedAt: Date | null }[]>`
      SELECT partner_id, deleted_at FROM webhooks WHERE webhook_id = ${webhookId}`;
    if (row === undefined) return 'missing';
    if (row.partnerId !== partnerId) return 'foreign';
    return row.deletedAt === null ? 'found' : 'missing';
  }

  /**
   * A reactivated webhook starts without failures.
   * @returns undefined if the webhook is deleted
   */
  async update(
    webhookId: number,
    change: { url: string | undefined; events: readonly string[] | undefined; isActive: boolean | undefined },
  ): Promise<WebhookRow | undefined> {
    const { url = null, events = null, isActive = null } = change;
    const host = url === null ? null : new URL(url).hostname;
    const updateRow = async (sql: Run): Promise<WebhookRow | undefined> => {
      const [row] = await sql<Row[]>`
        UPDATE webhooks SET url = coalesce(${url}::text, url), host = coalesce(${host}::text, host),
          events = coalesce(${events}::text[], events),
          is_active = coalesce(${isActive}::boolean, is_active),
          failing_since = CASE WHEN ${isActive}::boolean AND NOT is_active THEN NULL ELSE failing_since END,
          deactivated_at = CASE WHEN ${isActive}::boolean THEN NULL ELSE deactivated_at END
        WHERE webhook_id = ${webhookId} AND deleted_at IS NULL
        RETURNING webhook_id, url, events, is_active, created_at`;
      return row === undefined ? undefined : fromRow(row);
    };
    if (url === null && isActive !== true) return updateRow(this.sql);
    return this.sql.begin(async (tx) => {
      // A changed URL or a reactivation may have fixed the webhook, so the next attempt is made at once.
      await tx`
        UPDATE webhook_endpoints SET failures = 0, not_before = '-infinity' WHERE webhook_id = ${webhookId}`;
      return updateRow(tx);
    });
  }

  /**
   * The previous secret also signs until the given time.
   * @returns false if the webhook is deleted
   */
  async rotateSecret(webhookId: number, secret: string, previousUntil: Date): Promise<boolean> {
    const rows = await this.sql`
      UPDATE webhooks SET previous_secret = secret, previous_secret_until = ${previousUntil}, secret = ${secret}
      WHERE webhook_id = ${webhookId} AND deleted_at IS NULL RETURNING 1`;
    return rows.length > 0;
  }

  /**
   * Deletes a webhook. Its row and its deliveries are kept, and waiting deliveries are never claimed again.
   */
  async delete(partnerId: number, webhookId: number): Promise<'deleted' | 'missing' | 'foreign'> {
    return this.sql.begin(async (tx) => {
      const [row] = await tx<{ partnerId: number; deletedAt: Date | null }[]>`
        SELECT partner_id, deleted_at FROM webhooks WHERE webhook_id = ${webhookId} FOR NO KEY UPDATE`;
      if (row === undefined) return 'missing';
      if (row.partnerId !== partnerId) return 'foreign';
      if (row.deletedAt !== null) return 'missing';
      await tx`UPDATE webhooks SET deleted_at = now() WHERE webhook_id = ${webhookId}`;
      return 'deleted';
    });
  }

  /**
   * Returns a page of a webhook's deliveries, newest first, and their total number, both limited to {@link
   * DELIVERIES_LISTED_MAX}.
   */
  async deliveryPage(
    webhookId: number,
    page: number,
    limit: number,
  ): Promise<{ deliveries: DeliveryRow[]; total: number }> {
    const offset = (page - 1) * limit;
    const listed = Math.max(0, Math.min(limit, DELIVERIES_LISTED_MAX - offset));
    const deliveries = await this.sql<DeliveryRow[]>`
      SELECT delivery_id AS id, event_id, event, status, d.attempts, max_attempts, d.created_at, last_attempt_at, ${NEXT_ATTEMPT},
             response_status
      FROM deliveries d JOIN events USING (event_id) JOIN webhooks w USING (webhook_id)
        LEFT JOIN webhook_endpoints USING (webhook_id)
      WHERE d.webhook_id = ${webhookId}
      ORDER BY delivery_id DESC LIMIT ${listed} OFFSET ${Math.min(offset, DELIVERIES_LISTED_MAX)}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM deliveries WHERE webhook_id = ${webhookId} LIMIT ${DELIVERIES_LISTED_MAX}) AS counted`;
    return { deliveries, total: safe(count!.total) };
  }
}

/**
 * SQL column: time of the next attempt of a delivery, from `deliveries`, `webhooks` and `webhook_endpoints`.
 * It is not before the end of the webhook's rest, and null while the webhook is inactive.
 */
export const NEXT_ATTEMPT = raw(
  'CASE WHEN w.is_active THEN greatest(next_attempt_at, CASE WHEN next_attempt_at IS NOT NULL THEN not_before END) END AS next_attempt_at',
);

/** Maximum number of rows that one statement removes. */
const REMOVED_MAX = 1000;

/**
 * Removes deliveries and e-mails that ended the given number of days ago, waiting deliveries of webhooks
 * deleted that long ago, and events of that age without a delivery.
 * @returns the number of removed rows; 0 if none is left
 */
export async function removeEndedDeliveries(sql: Sql, days: number): Promise<number> {
  const ended = await sql<{ deliveryId: string }[]>`
    DELETE FROM deliveries WHERE delivery_id IN (
      SELECT delivery_id FROM deliveries
      WHERE status <> 'pending' AND coalesce(last_attempt_at, created_at) < now() - make_interval(days => ${days})
      ORDER BY coalesce(last_attempt_at, created_at) LIMIT ${REMOVED_MAX})
    RETURNING delivery_id`;
  const orphaned = await sql<{ deliveryId: string }[]>`
    DELETE FROM deliveries WHERE delivery_id IN (
      SELECT delivery_id FROM deliveries d JOIN webhooks w USING (webhook_id)
      WHERE status = 'pending' AND w.deleted_at < now() - make_interval(days => ${days}) LIMIT ${REMOVED_MAX})
    RETURNING delivery_id`;
  // An event id starts with its time, so old events are a range of ids.
  const events = await sql<{ eventId: string }[]>`
    DELETE FROM events WHERE event_id IN (
      SELECT event_id FROM events e
      WHERE event_id < 'evt_' || lpad(to_hex((extract(epoch FROM now() - make_interval(days => ${days})) * 1000)::bigint), 12, '0')
        AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.event_id)
      ORDER BY event_id LIMIT ${REMOVED_MAX})
    RETURNING event_id`;
  await sql`
    DELETE FROM webhook_hosts h WHERE minute < extract(epoch FROM now() - make_interval(days => ${days})) / 60
      AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.host = h.host AND w.partner_id = h.partner_id AND deleted_at IS NULL)`;
  await sql`
    DELETE FROM webhook_endpoints e USING webhooks w
    WHERE w.webhook_id = e.webhook_id AND w.deleted_at < now() - make_interval(days => ${days})`;
  return ended.length + orphaned.length + events.length;
}

/** Maximum number of webhooks resealed in one transaction. */
const RESEALED_MAX = 500;

/**
 * Seals all secrets with the newest key, including those of deleted webhooks. Can be repeated, and run by
 * several processes at once. Without a key, unsealed secrets stay unsealed.
 * @throws UnknownKeyError if a secret is sealed with a key that the box lacks
 */
export async function sealSecrets(sql: Sql, box: SecretBox): Promise<void> {
  const like = `${box.prefix ?? 'whsec'}%`;
  while ((await sealSome(sql, box, like)) === RESEALED_MAX);
}

/**
 * Reseals the secrets of one batch of webhooks.
 * @returns the number of resealed webhooks
 */
async function sealSome(sql: Sql, box: SecretBox, like: string): Promise<number> {
  return sql.begin(async (tx) => {
    const rows = await tx<{ webhookId: number; secret: string; previousSecret: string | null }[]>`
      SELECT webhook_id, secret, previous_secret FROM webhooks
      WHERE secret NOT LIKE ${like} OR previous_secret NOT LIKE ${like}
      ORDER BY webhook_id LIMIT ${RESEALED_MAX} FOR UPDATE`;
    const sealed = rows.map((row) => ({
      id: row.webhookId,
      secret: box.seal(box.open(row.secret)),
      previous: row.previousSecret === null ? null : box.seal(box.open(row.previousSecret)),
    }));
    await tx`
      UPDATE webhooks w SET secret = r.secret, previous_secret = r.previous
      FROM json_to_recordset(${JSON.stringify(sealed)}::json) AS r(id int, secret text, previous text)
      WHERE w.webhook_id = r.id`;
    return rows.length;
  });
}
