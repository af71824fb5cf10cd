/**
 * Deliveries in Postgres, shared by all workers. The worker that makes an attempt leases the delivery, renews
 * the lease during the attempt, and records the result. The lease of a terminated worker expires, and the
 * delivery is due again.
 */
import type { Static } from '#typebox';
import type { Environment } from '../domain/game.js';
import type { ConcurrencyLimit as ConcurrencyLimitSchema, NewEvent } from '../domain/webhook.js';
import { writeAuditEntry } from '../postgres/auditLog.js';
import type { Sql, Transaction } from '../postgres/connection.js';
import { ATTEMPTS_MAX, recordEvents } from '../postgres/partnerEvents.js';
import { arrayOf, Raw, raw, textArrayOf } from '../postgres/statements.js';

/** Number of days without a successful attempt after which a failing webhook is deactivated. */
const FAILING_DAYS_MAX = 5;

export interface DueDelivery {
  readonly deliveryId: string;
  readonly webhookId: number;
  readonly eventId: string;
  readonly event: string;
  readonly body: string;
  readonly url: string;
  readonly secret: string;
  /** Previous secret of the webhook, with which events are also signed until the given time. */
  readonly previous?: { readonly secret: string; readonly until: Date };
  readonly environment: Environment;
  /** Number of attempts whose result has been recorded. */
  readonly attempts: number;
  readonly maxAttempts: number;
}

/** Maximum number of concurrent attempts for one partner in this process, over all its webhooks. */
export const PER_PARTNER_MAX = 64;
/**
 * Number of attempts in progress that each webhook may have, even if it is slow or failing, or if others use
 * most of the capacity.
 */
export const FEW = 4;
/** Number of consecutive failures after which a webhook gets one attempt at a time. */
const FAILURES_MAX = 50;
/**
 * Maximum pause between single attempts of a failing webhook, in seconds. The pause doubles after each
 * failure up to this value.
 */
const REST_MAX_SECONDS = 60;
/**
 * Time in seconds after the start of a failing webhook's single attempt for which no further attempt starts.
 * Once the result is recorded, a further attempt may start earlier.
 */
const ATTEMPT_SECONDS = 20;

/**
 * Common table expressions: the current minute, the part of the limit of attempts per minute that may be used
 * by now, and the number of attempts already started for each host.
 */
const THIS_MINUTE = raw(`
    clock AS (
      SELECT floor(seconds / 60)::bigint AS this_minute, (1 + mod(seconds, 60) / 60) / 2 AS share
      FROM (SELECT extract(epoch FROM now()) AS seconds) s
    ),
    used AS (
      SELECT host, sum(attempts) AS attempts FROM webhook_hosts JOIN clock ON minute = this_minute GROUP BY host
    )`);

/** Common table expressions that count the rows of `due` by host and partner and by webhook. */
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

/** Limits of {@link claimDue}. */
export interface ClaimLimits {
  /**
   * Maximum number of concurrent attempts for one partner to the webhooks of the claim. All its webhooks have
   * {@link PER_PARTNER_MAX}.
   */
  readonly perPartner: number;
  /**
   * Maximum number of concurrent attempts to one webhook. It is {@link FEW} for a webhook whose newest
   * attempt failed.
   */
  readonly perWebhook: number;
  /** Maximum number of deliveries to claim. */
  readonly room: number;
  /**
   * Maximum number of deliveries to claim if they would be more than the {@link FEW} concurrent ones of their
   * webhook.
   */
  readonly roomBeyondFew: number;
  /** Maximum number of attempts to a host per minute. */
  readonly perHost: number;
  readonly leaseMs: number;
}

/**
 * Leases due deliveries. Each webhook gets as many as its limit of concurrent attempts and that of its
 * partner allow, oldest first. The first delivery of every webhook comes before the second of any. A failing
 * webhook that gets only one attempt at a time gets the delivery with the most attempts so far, so that its
 * deliveries end one by one.
 *
 * A host gets at most its limit of attempts per minute, and each partner at most half of this limit. Half of
 * what a host or a partner gets may be used at once; the rest becomes available evenly over the minute. Among
 * the partners of a host, and among the webhooks of a partner, those with the fewest attempts in this minute
 * come first. An attempt of a failing webhook counts more the longer the webhook fails, so that no webhook
 * waits long behind a busy neighbour. Workers that claim at the same moment may both use the last free
 * attempts.
 * @param underWay number of deliveries in progress in this process, by webhook
 * @param of set of webhooks: only these, or all except these
 */
export async function claimDue(
  sql: Sql,
  underWay: ReadonlyMap<number, number>,
  of: { readonly webhooks: Iterable<number>; readonly only: boolean },
  limits: ClaimLimits,
): Promise<DueDelivery[]> {
  const these = arrayOf([...of.webhooks]);
  const rows = await sql<DueRow[]>`
    WITH ${THIS_MINUTE},
    busy AS (
      SELECT * FROM unnest(${arrayOf([...underWay.keys()])}::int[], ${arrayOf([...underWay.values()])}::int[])
        AS b(webhook_id, under_way)
    ),
    busy_partners AS (
      SELECT partner_id, sum(under_way) AS under_way,
        coalesce(sum(under_way) FILTER (WHERE (webhook_id = ANY(${these}::int[])) = ${of.only}), 0) AS under_way_of_these
      FROM busy JOIN webhooks USING (webhook_id) GROUP BY partner_id
    ),
    endpoints AS (
      SELECT w.*, coalesce(busy.under_way, 0) AS under_way, coalesce(e.failures, 0) AS failures,
        least(${PER_PARTNER_MAX} - coalesce(busy_partners.under_way, 0),
          ${limits.perPartner}::int - coalesce(under_way_of_these, 0)) AS room_of_partner,
        coalesce(e.failures >= ${FAILURES_MAX}, false) AS rests,
        CASE WHEN e.minute = this_minute THEN e.attempts ELSE 0 END AS begun,
        CASE WHEN h.minute = this_minute THEN h.attempts ELSE 0 END AS begun_by_partner,
        ceil(${Math.ceil(limits.perHost / 2)}::int * share) AS share_of_partner,
        ceil(${limits.perHost}::int * share) - coalesce(used.attempts, 0) AS room_of_host,
        greatest(${FEW}, ceil(${limits.room}::float8 / count(*) OVER ())) AS portion
      FROM webhooks w CROSS JOIN clock LEFT JOIN webhook_endpoints e USING (webhook_id)
      LEFT JOIN webhook_hosts h USING (host, partner_id) LEFT JOIN used USING (host)
      LEFT JOIN busy USING (webhook_id) LEFT JOIN busy_partners USING (partner_id)
      WHERE w.deleted_at IS NULL AND w.is_active AND (w.webhook_id = ANY(${these}::int[])) = ${of.only}
        AND coalesce(e.not_before <= now(), true) AND EXISTS (
          SELECT FROM deliveries
          WHERE webhook_id = w.webhook_id AND status = 'pending' AND next_attempt_at <= now() AND leased_until < now())
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
        ORDER BY next_attempt_at LIMIT CASE WHEN rests THEN 1 ELSE greatest(0, least(portion, room_of_partner,
          CASE WHEN failures > 0 THEN ${FEW} ELSE ${limits.perWebhook}::int END - under_way)) END
        FOR UPDATE SKIP LOCKED
      ) d
    ),
    in_turn AS (
      SELECT *, row_number() OVER (PARTITION BY partner_id ORDER BY under_way + number, next_attempt_at) AS turn
      FROM waiting
    ),
    of_partners AS (
      SELECT *, row_number() OVER (PARTITION BY host, partner_id
        ORDER BY (begun + number - 1) * (1 + failures), failures, next_attempt_at) AS place_of_partner
      FROM in_turn WHERE turn <= room_of_partner
    ),
    of_hosts AS (
      SELECT *, row_number() OVER (PARTITION BY host
        ORDER BY begun_by_partner + place_of_partner, failures, next_attempt_at) AS place_of_host
      FROM of_partners WHERE begun_by_partner + place_of_partner <= share_of_partner
    ),
    due AS (
      SELECT * FROM (
        SELECT *, row_number() OVER (ORDER BY under_way + number, next_attempt_at) AS place FROM of_hosts
        WHERE place_of_host <= room_of_host) placed
      WHERE place <= CASE WHEN under_way + number <= ${FEW} THEN ${limits.room}::int ELSE ${limits.roomBeyondFew}::int END
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

/**
 * SQL value: time until the next unleased delivery is due, in ms; 0 if one is due; null if none is waiting.
 */
export const NEXT_DUE_MS = raw(`(
        SELECT 1000 * extract(epoch FROM greatest(min(next_attempt_at), now()) - now())
        FROM webhooks w CROSS JOIN LATERAL (
          SELECT next_attempt_at FROM deliveries
          WHERE webhook_id = w.webhook_id AND status = 'pending' AND (next_attempt_at > now() OR leased_until < now())
          ORDER BY next_attempt_at LIMIT 1) d
        WHERE deleted_at IS NULL AND is_active HAVING count(*) > 0)::float8`);

/**
 * Returns {@link NEXT_DUE_MS}, or Infinity if no delivery is waiting. Checking this value before each claim
 * avoids needless claim statements, which take milliseconds to plan.
 */
export async function nextDueMs(sql: Sql): Promise<number> {
  const [row] = await sql.prepared<[{ ms: number | null }]>`SELECT ${NEXT_DUE_MS} AS ms`;
  return row.ms ?? Number.POSITIVE_INFINITY;
}

type DueRow = Omit<DueDelivery, 'previous'> & {
  readonly previousSecret: string | null;
  readonly previousSecretUntil: Date | null;
};

const dueOf = ({ previousSecret: secret, previousSecretUntil: until, ...row }: DueRow): DueDelivery => ({
  ...row,
  ...(secret === null || until === null ? {} : { previous: { secret, until } }),
});

export async function prolongLeases(
  sql: Sql,
  deliveryIds: readonly string[],
  leaseMs: number,
): Promise<void> {
  await sql`
    UPDATE deliveries SET leased_until = now() + ${leaseMs} * interval '1 millisecond'
    WHERE delivery_id = ANY(${arrayOf(deliveryIds)}::text[]) AND status = 'pending'`;
}

/** Releases leases of attempts that were not made or that have an unknown result. */
export async function releaseLeases(sql: Sql, deliveryIds: readonly string[]): Promise<void> {
  await sql`
    UPDATE deliveries SET leased_until = '-infinity' WHERE delivery_id = ANY(${arrayOf(deliveryIds)}::text[])`;
}

export interface SendResult {
  readonly isDelivered: boolean;
  /** HTTP status of the response; null if there was no response. */
  readonly responseStatus: number | null;
  /** Reason of a failure in one line. */
  readonly error: string | null;
  /** First bytes of the response's body as text; null if there was no response or no body. */
  readonly responseStart: string | null;
}

export interface AttemptResult extends SendResult {
  readonly deliveryId: string;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  readonly atMs: number;
  readonly tookMs: number;
}

/** Number of attempts that a delivery keeps. Only a delivery that is resent several times has more. */
const ATTEMPTS_KEPT = 20;

/**
 * A failure counts only if the same attempt has no result yet, because two workers may have made it after a
 * lease expired. A success always counts.
 * @param delaysMs waits after the first, second, and further failed attempts, in ms; the last value applies
 * to all later attempts
 */
export async function recordAttempts(
  sql: Sql,
  results: readonly AttemptResult[],
  delaysMs: readonly number[],
): Promise<void> {
  const rows = results.map((result) => {
    const { deliveryId, attempt, isDelivered, responseStatus, error, responseStart } = result;
    const at = new Date(result.atMs).toISOString();
    const durationMs = Math.round(result.tookMs);
    return {
      id: deliveryId,
      attempt,
      delivered: isDelivered,
      status: responseStatus,
      error,
      at,
      made: { attempt, at, durationMs, responseStatus, error, responseStart },
    };
  });
  const waits = arrayOf(delaysMs);
  const text = JSON.stringify(rows);
  // Postgres expects a hundred rows of the JSON, for which it would read a small table of deliveries whole.
  const ids = textArrayOf(results.map(({ deliveryId }) => deliveryId));
  await sql.begin(async (tx) => {
    await tx`
    WITH attempted AS (
    UPDATE deliveries d
    SET attempts = greatest(d.attempts, r.attempt), last_attempt_at = r.at, response_status = r.status,
        last_error = r.error, leased_until = '-infinity',
        attempt_log = (
          SELECT jsonb_agg(kept ORDER BY place) FROM (
            SELECT kept, place FROM jsonb_array_elements(coalesce(d.attempt_log, '[]') || r.made)
              WITH ORDINALITY AS a(kept, place) ORDER BY place DESC LIMIT ${ATTEMPTS_KEPT}) newest),
        status = CASE WHEN r.delivered THEN 'delivered' WHEN r.attempt >= d.max_attempts THEN 'failed' ELSE 'pending' END,
        next_attempt_at = CASE WHEN NOT r.delivered AND r.attempt < d.max_attempts THEN now() + interval '1 millisecond' *
          (${waits}::bigint[])[least(${delaysMs.length}, ${ATTEMPTS_MAX} - (d.max_attempts - r.attempt))] END
    FROM json_to_recordset(${text}::json)
      AS r(id text, attempt int, delivered boolean, status int, error text, at timestamptz, made jsonb)
    WHERE d.delivery_id = r.id AND d.delivery_id = ANY(${ids}::text[])
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
    await noteFailing(tx, text, ids);
  });
}

/**
 * Records the time since which each webhook has been failing. A webhook is deactivated when a delivery has
 * used up its attempts and no attempt has succeeded for {@link FAILING_DAYS_MAX} days, so that every delivery
 * ended in that time has failed. Its partner is notified by e-mail. A failed attempt that will be retried
 * does not count.
 */
async function noteFailing(tx: Transaction, results: string, ids: string): Promise<void> {
  const rows = await tx<
    {
      webhookId: number;
      partnerId: number;
      url: string;
      failingSince: Date;
      deactivatedAt: Date | null;
    }[]
  >`
    WITH seen AS (
      SELECT webhook_id, bool_or(r.delivered) AS is_good, bool_or(d.status = 'failed') AS has_ended,
        min(at) AS first_at, max(at) AS last_at
      FROM json_to_recordset(${results}::json) AS r(id text, delivered boolean, at timestamptz)
      JOIN deliveries d ON d.delivery_id = r.id
      WHERE d.delivery_id = ANY(${ids}::text[]) AND webhook_id IS NOT NULL GROUP BY 1
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
    rows.flatMap(({ webhookId, partnerId, url, failingSince, deactivatedAt }): NewEvent[] =>
      deactivatedAt === null
        ? []
        : [
            {
              event: 'webhook.deactivated',
              partnerId,
              createdAt: deactivatedAt,
              data: { webhookId, url, failingSince: failingSince.toISOString() },
            },
          ],
    ),
  );
}

export type ConcurrencyLimit = Static<typeof ConcurrencyLimitSchema>;

/**
 * SQL table with the limit that keeps due deliveries of a webhook from being attempted: `partner_id`,
 * `webhook_id` and `limited_by`, which is null if there is none. A limit counts if a delivery has been due
 * for a second. Half of the partner's limit is enough, because attempts that have just ended are replaced
 * within milliseconds, and slow webhooks may use only half.
 */
export const CONCURRENCY_LIMITS = new Raw(`(
  SELECT partner_id, webhook_id, CASE WHEN NOT is_late THEN NULL
      WHEN sum(in_progress) OVER (PARTITION BY partner_id) >= ${PER_PARTNER_MAX / 2} THEN 'partner-concurrency'
      WHEN in_progress >= ${FEW} THEN 'webhook-concurrency' END AS limited_by
  FROM webhooks CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE leased_until > now()) AS in_progress,
      coalesce(bool_or(leased_until <= now() AND next_attempt_at < now() - interval '1 second'), false) AS is_late
    FROM (
      SELECT leased_until, next_attempt_at FROM deliveries d
      WHERE d.webhook_id = webhooks.webhook_id AND status = 'pending' AND next_attempt_at <= now()
      ORDER BY next_attempt_at LIMIT ${4 * PER_PARTNER_MAX}) oldest) due
  WHERE deleted_at IS NULL AND is_active)`);

/**
 * Returns the number of waiting deliveries, and the time in seconds for which the oldest due delivery has
 * been waiting, by the limit that holds the deliveries of its webhook back.
 */
export async function pendingDeliveries(
  sql: Sql,
): Promise<{ pending: number; oldestDueSeconds: Record<ConcurrencyLimit | 'none', number> }> {
  const rows = await sql<{ limitedBy: ConcurrencyLimit | 'none'; pending: bigint; oldest: number }[]>`
    SELECT coalesce(limited_by, 'none') AS limited_by, count(*) AS pending,
      extract(epoch FROM now() - min(next_attempt_at))::float8 AS oldest
    FROM deliveries JOIN ${CONCURRENCY_LIMITS} limits USING (webhook_id) WHERE status = 'pending' GROUP BY 1`;
  const oldestDueSeconds = { none: 0, 'partner-concurrency': 0, 'webhook-concurrency': 0 };
  for (const { limitedBy, oldest } of rows) oldestDueSeconds[limitedBy] = Math.max(0, oldest);
  return { pending: rows.reduce((sum, { pending }) => sum + Number(pending), 0), oldestDueSeconds };
}

/**
 * SQL assignments that make an ended delivery due again. The numbers of its attempts continue, and the
 * delivery gets the initial number of further attempts.
 */
const ONCE_MORE = raw(`status = 'pending', next_attempt_at = now(), leased_until = '-infinity',
  max_attempts = attempts + ${ATTEMPTS_MAX}`);

export class Deliveries {
  constructor(private readonly sql: Sql) {}

  /**
   * Resends all deliveries that failed since a time, except those of deleted webhooks.
   * @returns the number of resent deliveries
   */
  async resendFailed(actor: string, since: Date): Promise<number> {
    return this.sql.begin(async (tx) => {
      // A receiver that was unavailable for days may have many failed deliveries, so the statement gets a
      // long timeout.
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

  /** @returns false if the webhook has no such delivery */
  async resendOfWebhook(webhookId: number, deliveryId: string): Promise<boolean> {
    const rows = await this.sql`
      UPDATE deliveries SET next_attempt_at = now(), status = 'pending',
        leased_until = CASE status WHEN 'pending' THEN leased_until ELSE '-infinity' END,
        max_attempts = CASE status WHEN 'pending' THEN max_attempts ELSE attempts + ${ATTEMPTS_MAX} END
      WHERE delivery_id = ${deliveryId} AND webhook_id = ${webhookId} RETURNING 1`;
    return rows.length > 0;
  }

  /** Resends a delivery in any status. A waiting delivery becomes due now. */
  async resend(actor: string, deliveryId: string): Promise<'resent' | 'missing' | 'webhook-deleted'> {
    return this.sql.begin(async (tx) => {
      const [before] = await tx<{ status: string; attempts: number; deletedAt: Date | null }[]>`
        SELECT status, attempts, deleted_at FROM deliveries d LEFT JOIN webhooks USING (webhook_id)
        WHERE delivery_id = ${deliveryId} FOR UPDATE OF d`;
      if (before === undefined) return 'missing';
      if (before.deletedAt !== null) return 'webhook-deleted';
      // A pending delivery keeps its lease, because its attempt may be in progress.
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
