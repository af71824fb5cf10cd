/**
 * Deliveries as the workers share them: leased by whoever makes an attempt, and its result recorded. A lease is
 * prolonged while the attempt is under way; that of a worker which ended lapses, and the delivery is due again.
 */
import type { Environment } from '../domain/game.js';
import type { NewEvent } from '../domain/webhook.js';
import { writeAuditEntry } from '../postgres/auditLog.js';
import type { Sql, Transaction } from '../postgres/connection.js';
import { ATTEMPTS_MAX, recordEvents } from '../postgres/partnerEvents.js';
import { arrayOf, raw } from '../postgres/statements.js';

/** Days for which a webhook may fail. */
const FAILING_DAYS_MAX = 5;

export interface DueDelivery {
  readonly deliveryId: string;
  readonly webhookId: number;
  readonly eventId: string;
  readonly event: string;
  readonly body: string;
  readonly url: string;
  readonly secret: string;
  /** The secret that it replaced, which signs, too, until a time. */
  readonly previous?: { readonly secret: string; readonly until: Date };
  readonly environment: Environment;
  /** Attempts whose result is known. */
  readonly attempts: number;
  readonly maxAttempts: number;
}

/** A webhook that failed so often in a row gets one attempt at a time, … */
const FAILURES_MAX = 50;
/** … after rests that double up to this, seconds. */
const REST_MAX_SECONDS = 60;
/** Until the result of that attempt is known, or its worker is gone, the webhook gets nothing else, seconds. */
const ATTEMPT_SECONDS = 20;

/** The minute that is now, how much of its attempts may have begun by now, and how many did, by host. */
const THIS_MINUTE = raw(`
    clock AS (
      SELECT floor(seconds / 60)::bigint AS this_minute, (1 + mod(seconds, 60) / 60) / 2 AS share
      FROM (SELECT extract(epoch FROM now()) AS seconds) s
    ),
    used AS (
      SELECT host, sum(attempts) AS attempts FROM webhook_hosts JOIN clock ON minute = this_minute GROUP BY host
    )`);

/** Notes the attempts that begin with `due`, by host and partner, and by webhook. */
const COUNT_BEGUN = raw(`
    counted AS (
      INSERT INTO webhook_hosts AS h (host, partner_id, minute, attempts)
      SELECT host, partner_id, max(this_minute), count(*) FROM due CROSS JOIN clock
      GROUP BY host, partner_id ORDER BY host, partner_id
      ON CONFLICT (host, partner_id) DO UPDATE SET minute = excluded.minute,
        attempts = CASE WHEN h.minute = excluded.minute THEN h.attempts ELSE 0 END + excluded.attempts
    ),
    begun AS (
      INSERT INTO webhook_endpoints AS e (webhook_id, minute, attempts)
      SELECT webhook_id, max(this_minute), count(*) FROM due CROSS JOIN clock GROUP BY webhook_id ORDER BY webhook_id
      ON CONFLICT (webhook_id) DO UPDATE SET minute = excluded.minute,
        attempts = CASE WHEN e.minute = excluded.minute THEN e.attempts ELSE 0 END + excluded.attempts,
        not_before = CASE WHEN e.failures >= ${FAILURES_MAX} THEN now() + make_interval(secs => ${ATTEMPT_SECONDS})
          ELSE e.not_before END
    )`);

/**
 * Leases deliveries that are due: of each webhook as many as it may still have under way here, the oldest first; the first
 * of each webhook before the second of any. A webhook that rests between single attempts gets the delivery that has the fewest
 * attempts left: so one of its deliveries comes to its end, however many there are.
 *
 * Of each host no more than it may have in this minute, and of one partner no more than half of that; half of either at once,
 * the rest evenly over the minute. Who has had the fewest attempts in this minute is next: partners on the host, and webhooks
 * of a partner, where those of one that fails count the more the longer it fails. So nobody waits for long behind a neighbour
 * that takes all it can. Workers that claim at the same moment may take the same rest.
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
    WITH ${THIS_MINUTE},
    endpoints AS (
      SELECT w.*, coalesce(busy.under_way, 0) AS under_way, coalesce(e.failures, 0) AS failures,
        coalesce(e.failures >= ${FAILURES_MAX}, false) AS rests,
        CASE WHEN e.minute = this_minute THEN e.attempts ELSE 0 END AS begun,
        CASE WHEN h.minute = this_minute THEN h.attempts ELSE 0 END AS begun_by_partner,
        ceil(${Math.ceil(limits.perHost / 2)}::int * share) AS share_of_partner,
        ceil(${limits.perHost}::int * share) - coalesce(used.attempts, 0) AS room_of_host
      FROM webhooks w CROSS JOIN clock LEFT JOIN webhook_endpoints e USING (webhook_id)
      LEFT JOIN webhook_hosts h USING (host, partner_id) LEFT JOIN used USING (host)
      LEFT JOIN unnest(${arrayOf([...underWay.keys()])}::int[], ${arrayOf([...underWay.values()])}::int[])
        AS busy(webhook_id, under_way) USING (webhook_id)
      WHERE w.deleted_at IS NULL AND w.is_active AND (w.webhook_id = ANY(${arrayOf([...of.webhooks])}::int[])) = ${of.only}
        AND coalesce(e.not_before <= now(), true)
    ),
    waiting AS (
      SELECT endpoints.*, d.delivery_id, d.next_attempt_at,
        row_number() OVER (PARTITION BY webhook_id ORDER BY d.next_attempt_at) AS number
      FROM endpoints CROSS JOIN LATERAL (
        SELECT delivery_id, next_attempt_at FROM deliveries
        WHERE webhook_id = endpoints.webhook_id AND status = 'pending' AND next_attempt_at <= now() AND leased_until < now()
          AND (NOT rests OR coalesce(delivery_id = (
            SELECT delivery_id FROM deliveries
            WHERE webhook_id = endpoints.webhook_id AND status = 'pending' AND attempts > 0
              AND next_attempt_at <= now() AND leased_until < now()
            ORDER BY attempts DESC, next_attempt_at LIMIT 1), true))
        ORDER BY next_attempt_at LIMIT CASE WHEN rests THEN 1 ELSE greatest(0, ${limits.perWebhook} - under_way) END
        FOR UPDATE SKIP LOCKED
      ) d
    ),
    of_partners AS (
      SELECT *, row_number() OVER (PARTITION BY host, partner_id
        ORDER BY (begun + number - 1) * (1 + failures), failures, next_attempt_at) AS place_of_partner
      FROM waiting
    ),
    of_hosts AS (
      SELECT *, row_number() OVER (PARTITION BY host
        ORDER BY begun_by_partner + place_of_partner, failures, next_attempt_at) AS place_of_host
      FROM of_partners WHERE begun_by_partner + place_of_partner <= share_of_partner
    ),
    due AS (
      SELECT * FROM of_hosts WHERE place_of_host <= room_of_host
      ORDER BY under_way + number, next_attempt_at LIMIT ${limits.room}
    ),
    ${COUNT_BEGUN}
    UPDATE deliveries d SET leased_until = now() + ${limits.leaseMs} * interval '1 millisecond'
    FROM due JOIN partners USING (partner_id), events e
    WHERE d.delivery_id = due.delivery_id AND e.event_id = d.event_id
    RETURNING d.delivery_id, d.webhook_id, d.event_id, e.event, e.body, due.url, due.secret, due.previous_secret,
      due.previous_secret_until, environment, d.attempts,
      d.max_attempts`;
  return rows.map(dueOf);
}

/** Until the next delivery is due, leased ones apart, milliseconds; 0: one is; null: none waits. A value of a statement. */
export const NEXT_DUE_MS = raw(`(
        SELECT 1000 * extract(epoch FROM greatest(min(next_attempt_at), now()) - now())
        FROM webhooks w CROSS JOIN LATERAL (
          SELECT next_attempt_at FROM deliveries
          WHERE webhook_id = w.webhook_id AND status = 'pending' AND (next_attempt_at > now() OR leased_until < now())
          ORDER BY next_attempt_at LIMIT 1) d
        WHERE deleted_at IS NULL AND is_active HAVING count(*) > 0)::float8`);

/** {@link NEXT_DUE_MS}; Infinity: none waits. Asked before each claim: to plan the statement that claims takes milliseconds. */
export async function nextDueMs(sql: Sql): Promise<number> {
  const [row] = await sql.prepared<[{ ms: number | null }]>`SELECT ${NEXT_DUE_MS} AS ms`;
  return row.ms ?? Number.POSITIVE_INFINITY;
}

interface DueRow {
  delivery_id: string;
  webhook_id: number;
  event_id: string;
  event: string;
  body: string;
  url: string;
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
export async function recordAttempts(
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
    WITH attempted AS (
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
    RETURNING d.webhook_id, r.delivered, r.error, r.at
    ),
    counted AS (
      SELECT webhook_id, bool_or(delivered) AS has_success, count(*)::int AS attempts,
        (array_agg(error ORDER BY at DESC) FILTER (WHERE NOT delivered))[1] AS last_error
      FROM attempted WHERE webhook_id IS NOT NULL GROUP BY webhook_id
    )
    INSERT INTO webhook_endpoints AS e (webhook_id, minute, attempts, failures, last_error)
    SELECT webhook_id, 0, 0, CASE WHEN has_success THEN 0 ELSE attempts END, last_error FROM counted ORDER BY webhook_id
    ON CONFLICT (webhook_id) DO UPDATE
    SET failures = CASE WHEN excluded.failures = 0 THEN 0 ELSE least(e.failures + excluded.failures, 1000000) END,
      not_before = CASE WHEN excluded.failures = 0 OR e.failures + excluded.failures < ${FAILURES_MAX} THEN '-infinity'
        ELSE now() + interval '1 second' *
          least(${REST_MAX_SECONDS}, 2 ^ least(e.failures + excluded.failures - ${FAILURES_MAX}, 10)) END,
      last_error = coalesce(excluded.last_error, e.last_error)
    WHERE excluded.failures > 0 OR e.failures > 0`;
    await noteFailing(tx, text);
  });
}

/**
 * Notes since when each webhook of these results has failed. One is set inactive when a delivery has used up its attempts, and
 * none succeeded for {@link FAILING_DAYS_MAX} days: so every delivery that ended in them failed. Its partner is notified by e-mail.
 * An attempt that is followed by another says nothing yet.
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
      SELECT webhook_id, bool_or(r.delivered) AS is_good, bool_or(d.status = 'failed') AS has_ended,
        min(at) AS first_at, max(at) AS last_at
      FROM json_to_recordset(${results}::json) AS r(id text, delivered boolean, at timestamptz)
      JOIN deliveries d ON d.delivery_id = r.id WHERE webhook_id IS NOT NULL GROUP BY 1
    ), judged AS (
      SELECT webhook_id, is_good, coalesce(failing_since, first_at) AS since, last_at,
        NOT is_good AND is_active AND is_long AS is_over
      FROM seen JOIN webhooks USING (webhook_id) CROSS JOIN LATERAL (
        SELECT has_ended AND last_at >= failing_since + ${FAILING_DAYS_MAX} * interval '24 hours' AS is_long) long
      WHERE CASE WHEN is_good THEN failing_since IS NOT NULL ELSE failing_since IS NULL OR is_long END
      ORDER BY webhook_id FOR UPDATE OF webhooks
    )
    UPDATE webhooks w SET failing_since = CASE WHEN is_good THEN NULL ELSE since END,
      is_active = w.is_active AND NOT coalesce(is_over, false),
      deactivated_at = CASE WHEN is_over THEN last_at ELSE deactivated_at END
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

/** Deliveries that are sent again. */
export class Deliveries {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Sends the deliveries again that have failed since a time; gives how many. Those of deleted webhooks stay as they are. */
  async resendFailed(actor: string, since: Date): Promise<number> {
    return this.#sql.begin(async (tx) => {
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
      await writeAuditEntry(tx, { actor, action: 'delivery.resend-failed', subject: 'deliveries', after });
      return resent;
    });
  }

  /** Sends a delivery of a webhook again. @returns false where it has none of this id */
  async resendOfWebhook(webhookId: number, deliveryId: string): Promise<boolean> {
    const rows = await this.#sql`
      UPDATE deliveries SET next_attempt_at = now(), status = 'pending',
        leased_until = CASE status WHEN 'pending' THEN leased_until ELSE '-infinity' END,
        max_attempts = CASE status WHEN 'pending' THEN max_attempts ELSE attempts + ${ATTEMPTS_MAX} END
      WHERE delivery_id = ${deliveryId} AND webhook_id = ${webhookId} RETURNING 1`;
    return rows.length > 0;
  }

  /** Sends a delivery again, whatever became of it; one that waits is due now. */
  async resend(actor: string, deliveryId: string): Promise<'resent' | 'missing' | 'webhook-deleted'> {
    return this.#sql.begin(async (tx) => {
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
      await writeAuditEntry(tx, {
        actor,
        action: 'delivery.resend',
        subject: `delivery:${deliveryId}`,
        before: { status, attempts },
        after: { status: 'pending', attempts },
      });
      return 'resent';
    });
  }
}
