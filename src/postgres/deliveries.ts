/**
 * Deliveries as the workers share them: leased by whoever makes an attempt, and settled with its result. A lease is
 * prolonged while the attempt is under way; that of a worker which ended lapses, and the delivery is due again.
 */
import type { Environment } from '../domain/game.js';
import type { NewEvent } from '../domain/webhook.js';
import { audit } from './changes.js';
import { arrayOf, raw, type Sql, type Transaction } from './client.js';
import { ATTEMPTS_MAX, recordEvents } from './events.js';

/** Days for which a webhook may fail. */
const FAILING_DAYS_MAX = 5;

export interface DueDelivery {
  readonly deliveryId: string;
  readonly webhookId: number;
  readonly eventId: string;
  readonly event: string;
  /** As version 1 of the API has it. */
  readonly body: string;
  /** The version that the webhook was registered with. */
  readonly apiVersion: string;
  readonly url: string;
  readonly secret: string;
  /** The secret that it replaced, which signs, too, until a time. */
  readonly previous?: { readonly secret: string; readonly until: Date };
  readonly environment: Environment;
  /** Attempts whose result is known. */
  readonly attempts: number;
  readonly maxAttempts: number;
}

/** A host that failed a partner so often in a row gets one attempt of that partner at a time, … */
const FAILURES_MAX = 50;
/** … after rests that double up to this, seconds. */
const HOST_REST_MAX_SECONDS = 60;
/** Until the result of that attempt is known, or its worker is gone, the partner sends nothing else there, seconds. */
const HOST_ATTEMPT_SECONDS = 20;

/**
 * Leases deliveries that are due: of each webhook as many as it may still have under way here, the oldest first; the first
 * of each webhook before the second of any.
 * Of each host no more than it may have in this minute, and of one partner no more than half of that; workers that claim at
 * the same moment may take the same rest of it.
 * @param underWay deliveries that the caller has under way, by webhook
 * @param of of which webhooks: of these only, or of all but these
 */
export async function claimDue(
  sql: Sql,
  underWay: ReadonlyMap<number, number>,
  of: { readonly webhooks: Iterable<number>; readonly only: boolean },
  limits: { perWebhook: number; perHost: number; room: number; leaseMs: number },
): Promise<DueDelivery[]> {
  const rows = await sql<DueRow[]>`
    WITH minutes AS (SELECT floor(extract(epoch FROM now()) / 60)::bigint AS this_minute),
    used AS (
      SELECT host, sum(attempts) AS attempts FROM webhook_hosts JOIN minutes ON minute = this_minute GROUP BY host
    ),
    waiting AS (
      SELECT d.delivery_id, d.next_attempt_at, w.webhook_id, w.partner_id, w.url, w.secret, w.previous_secret,
        w.previous_secret_until, w.api_version, w.host,
        coalesce(busy.under_way, 0) + row_number() OVER (PARTITION BY w.webhook_id ORDER BY d.next_attempt_at) AS place,
        row_number() OVER (PARTITION BY w.host, w.partner_id ORDER BY d.next_attempt_at) AS place_of_partner,
        CASE WHEN h.failures >= ${FAILURES_MAX} THEN 1
             ELSE ${Math.ceil(limits.perHost / 2)} - CASE WHEN h.minute = this_minute THEN h.attempts ELSE 0 END
        END AS room_of_partner,
        ${limits.perHost} - coalesce(used.attempts, 0) AS room_of_host
      FROM webhooks w CROSS JOIN minutes LEFT JOIN webhook_hosts h USING (host, partner_id)
      LEFT JOIN used USING (host)
      LEFT JOIN unnest(${arrayOf([...underWay.keys()])}::int[], ${arrayOf([...underWay.values()])}::int[])
        AS busy(webhook_id, under_way) USING (webhook_id)
      CROSS JOIN LATERAL (
        SELECT delivery_id, next_attempt_at FROM deliveries
        WHERE webhook_id = w.webhook_id AND status = 'pending' AND next_attempt_at <= now() AND leased_until < now()
        ORDER BY next_attempt_at LIMIT greatest(0, ${limits.perWebhook} - coalesce(busy.under_way, 0)) FOR UPDATE SKIP LOCKED
      ) d
      WHERE w.deleted_at IS NULL AND w.is_active AND (w.webhook_id = ANY(${arrayOf([...of.webhooks])}::int[])) = ${of.only}
        AND coalesce(h.not_before <= now(), true)
    ),
    allowed AS (
      SELECT *, row_number() OVER (PARTITION BY host ORDER BY place_of_partner, next_attempt_at) AS place_of_host
      FROM waiting WHERE place_of_partner <= room_of_partner
    ),
    due AS (
      SELECT * FROM allowed WHERE place_of_host <= room_of_host ORDER BY place, next_attempt_at LIMIT ${limits.room}
    ),
    counted AS (
      INSERT INTO webhook_hosts AS h (host, partner_id, minute, attempts)
      SELECT host, partner_id, max(this_minute), count(*) FROM due CROSS JOIN minutes
      GROUP BY host, partner_id ORDER BY host, partner_id
      ON CONFLICT (host, partner_id) DO UPDATE SET minute = excluded.minute,
        attempts = CASE WHEN h.minute = excluded.minute THEN h.attempts ELSE 0 END + excluded.attempts,
        not_before = CASE WHEN h.failures >= ${FAILURES_MAX} THEN now() + make_interval(secs => ${HOST_ATTEMPT_SECONDS})
          ELSE h.not_before END
    )
    UPDATE deliveries d SET leased_until = now() + ${limits.leaseMs} * interval '1 millisecond'
    FROM due JOIN partners USING (partner_id), events e
    WHERE d.delivery_id = due.delivery_id AND e.event_id = d.event_id
    RETURNING d.delivery_id, d.webhook_id, d.event_id, e.event, e.body, due.url, due.secret, due.previous_secret,
      due.previous_secret_until, due.api_version, environment, d.attempts,
      d.max_attempts`;
  return rows.map(dueOf);
}

interface DueRow {
  delivery_id: string;
  webhook_id: number;
  event_id: string;
  event: string;
  body: string;
  url: string;
  api_version: string;
  secret: string;
  previous_secret: string | null;
  previous_secret_until: Date | null;
  environment: Environment;
  attempts: number;
  max_attempts: number;
}

const dueOf = (row: DueRow): DueDelivery => ({
  deliveryId: row.delivery_id,
  webhookId: row.webhook_id,
  eventId: row.event_id,
  event: row.event,
  body: row.body,
  url: row.url,
  apiVersion: row.api_version,
  secret: row.secret,
  ...(row.previous_secret === null || row.previous_secret_until === null
    ? {}
    : { previous: { secret: row.previous_secret, until: row.previous_secret_until } }),
  environment: row.environment,
  attempts: row.attempts,
  maxAttempts: row.max_attempts,
});

/** Prolongs leases. */
export async function prolongLeases(
  sql: Sql,
  deliveryIds: readonly string[],
  leaseMs: number,
): Promise<void> {
  await sql`
    UPDATE deliveries SET leased_until = now() + ${leaseMs} * interval '1 millisecond'
    WHERE delivery_id = ANY(${arrayOf(deliveryIds)}::text[]) AND status = 'pending'`;
}

/** Gives leases back: the attempts were not made, or it is not known what became of them. */
export async function releaseLeases(sql: Sql, deliveryIds: readonly string[]): Promise<void> {
  await sql`
    UPDATE deliveries SET leased_until = '-infinity' WHERE delivery_id = ANY(${arrayOf(deliveryIds)}::text[])`;
}

export interface AttemptResult {
  readonly deliveryId: string;
  /** 1 for the first. */
  readonly attempt: number;
  readonly isDelivered: boolean;
  readonly responseStatus: number | null;
  readonly error: string | null;
  readonly atMs: number;
}

/**
 * Writes down what became of attempts. A failure counts where no result of the same attempt is there yet (two workers may
 * have made it, after a lease had lapsed); a success counts in any case.
 * @param delaysMs waits after the first, second, … failed attempt; the last one holds for all further ones
 */
export async function settleAttempts(
  sql: Sql,
  results: readonly AttemptResult[],
  delaysMs: readonly number[],
): Promise<void> {
  const rows = results.map(({ deliveryId, attempt, isDelivered, responseStatus, error, atMs }) => ({
    id: deliveryId,
    attempt,
    delivered: isDelivered,
    status: responseStatus,
    error,
    at: new Date(atMs).toISOString(),
  }));
  const waits = arrayOf(delaysMs);
  const text = JSON.stringify(rows);
  await sql.begin(async (tx) => {
    await tx`
    WITH settled AS (
    UPDATE deliveries d
    SET attempts = greatest(d.attempts, r.attempt), last_attempt_at = r.at, response_status = r.status,
        last_error = r.error, leased_until = '-infinity',
        status = CASE WHEN r.delivered THEN 'delivered' WHEN r.attempt >= d.max_attempts THEN 'failed' ELSE 'pending' END,
        next_attempt_at = CASE WHEN NOT r.delivered AND r.attempt < d.max_attempts THEN now() + interval '1 millisecond' *
          (${waits}::bigint[])[least(${delaysMs.length}, ${ATTEMPTS_MAX} - (d.max_attempts - r.attempt))] END
    FROM json_to_recordset(${text}::json)
      AS r(id text, attempt int, delivered boolean, status int, error text, at timestamptz)
    WHERE d.delivery_id = r.id
      AND CASE WHEN r.delivered THEN d.status <> 'delivered' ELSE d.status = 'pending' AND d.attempts = r.attempt - 1 END
    RETURNING d.webhook_id, r.delivered
    ),
    hosts AS (
      SELECT host, partner_id, bool_or(delivered) AS has_success, count(*)::int AS attempts
      FROM settled JOIN webhooks USING (webhook_id) GROUP BY host, partner_id
    )
    UPDATE webhook_hosts h
    SET failures = CASE WHEN has_success THEN 0 ELSE least(h.failures + hosts.attempts, 1000000) END,
      not_before = CASE WHEN has_success OR h.failures + hosts.attempts < ${FAILURES_MAX} THEN '-infinity'
        ELSE now() + interval '1 second' *
          least(${HOST_REST_MAX_SECONDS}, 2 ^ least(h.failures + hosts.attempts - ${FAILURES_MAX}, 10)) END
    FROM hosts WHERE h.host = hosts.host AND h.partner_id = hosts.partner_id`;
    await noteFailing(tx, text);
  });
}

/**
 * Notes since when each webhook of these results has failed, and sets one inactive whose every attempt has failed for
 * {@link FAILING_DAYS_MAX} days; its partner is told by e-mail.
 */
async function noteFailing(tx: Transaction, results: string): Promise<void> {
  const rows = await tx<
    {
      webhook_id: number;
      partner_id: number;
      url: string;
      failing_since: Date;
      deactivated_at: Date | null;
    }[]
  >`
    WITH seen AS (
      SELECT webhook_id, bool_or(delivered) AS is_good, min(at) AS first_at, max(at) AS last_at
      FROM json_to_recordset(${results}::json) AS r(id text, delivered boolean, at timestamptz)
      JOIN deliveries d ON d.delivery_id = r.id WHERE webhook_id IS NOT NULL GROUP BY 1
    ), judged AS (
      SELECT webhook_id, is_good, coalesce(failing_since, first_at) AS since, last_at,
             NOT is_good AND is_active AND last_at >= failing_since + ${FAILING_DAYS_MAX} * interval '24 hours' AS is_over
      FROM seen JOIN webhooks USING (webhook_id)
      WHERE CASE WHEN is_good THEN failing_since IS NOT NULL
                 ELSE failing_since IS NULL OR last_at >= failing_since + ${FAILING_DAYS_MAX} * interval '24 hours' END
      ORDER BY webhook_id FOR UPDATE OF webhooks
    )
    UPDATE webhooks w SET failing_since = CASE WHEN is_good THEN NULL ELSE since END,
      is_active = w.is_active AND NOT coalesce(is_over, false)
    FROM judged j WHERE w.webhook_id = j.webhook_id
    RETURNING w.webhook_id, w.partner_id, w.url, w.failing_since, CASE WHEN is_over THEN last_at END AS deactivated_at`;
  await recordEvents(
    tx,
    rows.flatMap(({ webhook_id, partner_id, url, failing_since, deactivated_at }): NewEvent[] =>
      deactivated_at === null
        ? []
        : [
            {
              event: 'webhook.deactivated',
              partnerId: partner_id,
              createdAt: deactivated_at,
              data: { webhookId: webhook_id, url, failingSince: failing_since.toISOString() },
            },
          ],
    ),
  );
}

/** How many deliveries wait, and for how long the oldest of those that are due has waited, seconds. */
export async function pendingDeliveries(sql: Sql): Promise<{ pending: number; oldestDueSeconds: number }> {
  const [row] = await sql<{ pending: bigint; oldest: number }[]>`
    SELECT count(*) AS pending,
           coalesce(extract(epoch FROM now() - min(next_attempt_at))::float8, 0) AS oldest
    FROM deliveries JOIN webhooks USING (webhook_id) WHERE status = 'pending' AND deleted_at IS NULL AND is_active`;
  return { pending: Number(row!.pending), oldestDueSeconds: Math.max(0, row!.oldest) };
}

/** What makes a delivery due once more: its attempts are counted on, and it gets as many as it had at first. */
const ONCE_MORE = raw(`status = 'pending', next_attempt_at = now(), leased_until = '-infinity',
  max_attempts = attempts + ${ATTEMPTS_MAX}`);

/** Sends the deliveries again that have failed since a time; gives how many. Those of deleted webhooks stay as they are. */
export async function resendFailed(sql: Sql, actor: string, since: Date): Promise<number> {
  return sql.begin(async (tx) => {
    // A receiver that was away for days has many.
    await tx.patiently();
    const [row] = await tx<{ resent: bigint }[]>`
      WITH resent AS (
        UPDATE deliveries d SET ${ONCE_MORE} FROM webhooks w
        WHERE d.status = 'failed' AND d.last_attempt_at >= ${since} AND w.webhook_id = d.webhook_id AND w.deleted_at IS NULL
        RETURNING 1
      ) SELECT count(*) AS resent FROM resent`;
    const resent = Number(row!.resent);
    const after = { since: since.toISOString(), resent };
    await audit(tx, { actor, action: 'delivery.resend-failed', subject: 'deliveries', after });
    return resent;
  });
}

/** Sends a delivery of a webhook again. @returns false where it has none of this id */
export async function resendOfWebhook(sql: Sql, webhookId: number, deliveryId: string): Promise<boolean> {
  const rows = await sql`
    UPDATE deliveries SET next_attempt_at = now(), status = 'pending',
      leased_until = CASE status WHEN 'pending' THEN leased_until ELSE '-infinity' END,
      max_attempts = CASE status WHEN 'pending' THEN max_attempts ELSE attempts + ${ATTEMPTS_MAX} END
    WHERE delivery_id = ${deliveryId} AND webhook_id = ${webhookId} RETURNING 1`;
  return rows.length > 0;
}

/** Sends a delivery again, whatever became of it; one that waits is due now. */
export async function resendDelivery(
  sql: Sql,
  actor: string,
  deliveryId: string,
): Promise<'resent' | 'missing' | 'webhook-deleted'> {
  return sql.begin(async (tx) => {
    const [before] = await tx<{ status: string; attempts: number; deleted_at: Date | null }[]>`
      SELECT status, attempts, deleted_at FROM deliveries d LEFT JOIN webhooks USING (webhook_id)
      WHERE delivery_id = ${deliveryId} FOR UPDATE OF d`;
    if (before === undefined) return 'missing';
    if (before.deleted_at !== null) return 'webhook-deleted';
    // One that is pending keeps its lease: its attempt may be under way.
    if (before.status === 'pending') {
      await tx`UPDATE deliveries SET next_attempt_at = now() WHERE delivery_id = ${deliveryId}`;
    } else {
      await tx`UPDATE deliveries SET ${ONCE_MORE} WHERE delivery_id = ${deliveryId}`;
    }
    const { status, attempts } = before;
    await audit(tx, {
      actor,
      action: 'delivery.resend',
      subject: `delivery:${deliveryId}`,
      before: { status, attempts },
      after: { status: 'pending', attempts },
    });
    return 'resent';
  });
}
