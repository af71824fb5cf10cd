/** Sessions of the console. Only the SHA-256 of a session's token is stored, with the hash of the key that it was begun with. */
import type { Sql } from './client.js';

/** Sessions of one key at once; one more ends the oldest. */
const SESSIONS_PER_KEY_MAX = 10;

export interface SessionRow {
  readonly keyHash: Buffer;
  readonly expiresAt: Date;
}

/** Begins a session, and forgets those that are over. */
export async function beginSession(
  sql: Sql,
  session: { sessionHash: Buffer; keyHash: Buffer; minutes: number },
): Promise<Date> {
  return sql.begin(async (tx) => {
    await tx`DELETE FROM operator_sessions WHERE expires_at <= now()`;
    // Sign-ins with one key wait for each other: so the bound holds.
    await tx`SELECT pg_advisory_xact_lock(7310013, hashtext(encode(${session.keyHash}, 'hex')))`;
    await tx`
      DELETE FROM operator_sessions WHERE session_hash IN (
        SELECT session_hash FROM operator_sessions WHERE key_hash = ${session.keyHash}
        ORDER BY created_at DESC, session_hash OFFSET ${SESSIONS_PER_KEY_MAX - 1})`;
    const [row] = await tx<{ expires_at: Date }[]>`
      INSERT INTO operator_sessions (session_hash, key_hash, expires_at)
      VALUES (${session.sessionHash}, ${session.keyHash}, now() + ${session.minutes}::int * interval '1 minute')
      RETURNING expires_at`;
    return row!.expires_at;
  });
}

/** A session that is not over; its key is to be judged still. */
export async function findSession(sql: Sql, sessionHash: Buffer): Promise<SessionRow | undefined> {
  const [row] = await sql<{ key_hash: Buffer; expires_at: Date }[]>`
    SELECT key_hash, expires_at FROM operator_sessions WHERE session_hash = ${sessionHash} AND expires_at > now()`;
  return row === undefined ? undefined : { keyHash: row.key_hash, expiresAt: row.expires_at };
}

export async function endSession(sql: Sql, sessionHash: Buffer): Promise<void> {
  await sql`DELETE FROM operator_sessions WHERE session_hash = ${sessionHash}`;
}
