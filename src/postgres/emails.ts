/** E-mails that wait in the outbox of events: leased by whoever sends them, and settled as webhook deliveries are. */
import type { Sql } from './client.js';

export interface DueEmail {
  readonly deliveryId: string;
  readonly event: string;
  /** The event's body, as webhooks get it. */
  readonly body: string;
  readonly recipient: string;
  /** Attempts whose result is known. */
  readonly attempts: number;
  readonly maxAttempts: number;
}

/** Leases e-mails that are due, the oldest first. */
export async function claimEmails(
  sql: Sql,
  { room, leaseMs }: { room: number; leaseMs: number },
): Promise<DueEmail[]> {
  const rows = await sql<
    {
      delivery_id: string;
      event: string;
      body: string;
      recipient: string;
      attempts: number;
      max_attempts: number;
    }[]
  >`
    WITH due AS (
      SELECT delivery_id FROM deliveries
      WHERE webhook_id IS NULL AND status = 'pending' AND next_attempt_at <= now() AND leased_until < now()
      ORDER BY next_attempt_at LIMIT ${room} FOR UPDATE SKIP LOCKED
    )
    UPDATE deliveries d SET leased_until = now() + ${leaseMs} * interval '1 millisecond'
    FROM due, events e WHERE d.delivery_id = due.delivery_id AND e.event_id = d.event_id
    RETURNING d.delivery_id, event, body, recipient, attempts, max_attempts`;
  return rows.map((row) => ({
    deliveryId: row.delivery_id,
    event: row.event,
    body: row.body,
    recipient: row.recipient,
    attempts: row.attempts,
    maxAttempts: row.max_attempts,
  }));
}

/** Marks due e-mails as unsent: nobody can send them. @returns how many */
export async function leaveEmailsUnsent(sql: Sql): Promise<number> {
  const rows = await sql`
    UPDATE deliveries SET status = 'unsent', next_attempt_at = NULL
    WHERE webhook_id IS NULL AND status = 'pending' AND next_attempt_at <= now() RETURNING 1`;
  return rows.length;
}
