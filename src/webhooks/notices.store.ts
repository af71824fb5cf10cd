/**
 * Records notices of keys that expire soon, each once, and leases due e-mails. The process that sends an
 * e-mail records its result like that of a webhook delivery.
 */
import type { Sql } from '../postgres/connection.js';
import { recordEvents } from '../postgres/partnerEvents.js';

/** Numbers of days before a key expires at which its partner is notified (docs/contract.md §13.1). */
const NOTICE_DAYS = '{30,7,1}';

/**
 * Records the due notices of expiring keys. If several notice days passed while no worker ran, only the last
 * one is recorded, because earlier notices would no longer be true. Notice days before the key was issued are
 * skipped.
 * @returns the number of recorded deliveries
 */
export async function noticeExpiringKeys(sql: Sql, now: Date): Promise<number> {
  return sql.begin(async (tx) => {
    const rows = await tx<
      { keyId: number; days: number; partnerId: number; name: string | null; expiresAt: Date }[]
    >`
      WITH noticed AS (
        INSERT INTO key_notices (key_id, days, noticed_at)
        SELECT key_id, due.days, ${now}::timestamptz
        FROM api_keys k JOIN partners USING (partner_id) CROSS JOIN LATERAL (
          SELECT min(days) AS days FROM unnest(${NOTICE_DAYS}::int[]) AS days
          WHERE k.expires_at - days * interval '24 hours' <= ${now}::timestamptz
        ) due
        WHERE is_active AND revoked_at IS NULL AND expires_at > ${now}::timestamptz
          AND k.created_at <= k.expires_at - due.days * interval '24 hours'
        ON CONFLICT DO NOTHING
        RETURNING key_id, days
      )
      SELECT key_id, days, partner_id, name, expires_at FROM noticed JOIN api_keys USING (key_id) ORDER BY key_id`;
    return recordEvents(
      tx,
      rows.map(({ keyId, days, partnerId, name, expiresAt }) => ({
        event: 'api_key.expiring',
        partnerId,
        createdAt: now,
        data: { keyId, name, expiresAt: expiresAt.toISOString(), daysLeft: days },
      })),
    );
  });
}

export interface DueEmail {
  readonly deliveryId: string;
  readonly event: string;
  /** Body of the event, the same as webhooks receive. */
  readonly body: string;
  readonly recipient: string;
  /** Number of attempts whose result has been recorded. */
  readonly attempts: number;
  readonly maxAttempts: number;
}

/** Leases due e-mails, oldest first. */
export async function claimEmails(
  sql: Sql,
  { room, leaseMs }: { room: number; leaseMs: number },
): Promise<DueEmail[]> {
  return sql<DueEmail[]>`
    WITH due AS (
      SELECT delivery_id FROM deliveries
      WHERE webhook_id IS NULL AND status = 'pending' AND next_attempt_at <= now() AND leased_until < now()
      ORDER BY next_attempt_at LIMIT ${room} FOR UPDATE SKIP LOCKED
    )
    UPDATE deliveries d SET leased_until = now() + ${leaseMs} * interval '1 millisecond'
    FROM due, events e WHERE d.delivery_id = due.delivery_id AND e.event_id = d.event_id
    RETURNING d.delivery_id, event, body, recipient, attempts, max_attempts`;
}

/**
 * Marks due e-mails as unsent, because there is no SMTP server.
 * @returns the number of marked e-mails
 */
export async function leaveEmailsUnsent(sql: Sql): Promise<number> {
  const rows = await sql`
    UPDATE deliveries SET status = 'unsent', next_attempt_at = NULL
    WHERE webhook_id IS NULL AND status = 'pending' AND next_attempt_at <= now() RETURNING 1`;
  return rows.length;
}
