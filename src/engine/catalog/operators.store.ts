/**
 * SQL of operators, their keys and the sessions of the console. Keys and session tokens are stored only as
 * SHA-256 hashes. The row of a key also has the key's prefix. The row of a session also has the hash of the
 * key with which the session was begun. A name is never given to a second operator.
 */

import type { StoredKey } from '../../domain/apiKey.js';
import type { OperatorKey, Operator as OperatorSchema, Role } from '../../domain/operator.js';
import type { WithDates } from '../../domain/schema.js';
import { because, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';

/**
 * Maximum number of operator names, including names that are no longer in use. There is a limit because front
 * ends hold all names in memory.
 */
const OPERATORS_MAX = 1000;

export type OperatorRow = Omit<
  WithDates<typeof OperatorSchema, 'createdAt' | 'issuedAt' | 'expiresAt' | 'revokedAt'>,
  'status'
>;

interface Row extends Omit<OperatorRow, 'role'> {
  /** An operator with the role support has auditor here, and `isSupport`. */
  role: Exclude<Role, 'support'>;
  isSupport: boolean;
  keyHash: Buffer;
  changed: bigint;
}

const COLUMNS = raw(
  'name, role, is_support, key_hash, prefix, created_at, issued_at, expires_at, revoked_at, changed',
);

const roleOf = ({ role, isSupport }: Pick<Row, 'role' | 'isSupport'>): Role => (isSupport ? 'support' : role);

const fromRow = (row: Row): OperatorRow => ({
  name: row.name,
  role: roleOf(row),
  prefix: row.prefix,
  createdAt: row.createdAt,
  issuedAt: row.issuedAt,
  expiresAt: row.expiresAt,
  revokedAt: row.revokedAt,
});

/** An operator's key as the catalog holds it. `hash` is a latin1 string of 32 characters. */
export type ChangedOperator = OperatorKey & { readonly hash: string; readonly changed: bigint };

export async function operatorsAfter(tx: Transaction, after: bigint): Promise<ChangedOperator[]> {
  const rows = await tx<Row[]>`SELECT ${COLUMNS} FROM operators WHERE changed > ${after}`;
  return rows.map((row) => ({
    name: row.name,
    role: roleOf(row),
    hash: row.keyHash.toString('latin1'),
    expiresAtMs: row.expiresAt?.getTime() ?? null,
    isRevoked: row.revokedAt !== null,
    changed: row.changed,
  }));
}

/** Maximum number of sessions of one key. Beginning a further session ends the oldest one. */
const SESSIONS_PER_KEY_MAX = 10;

export interface SessionRow {
  readonly keyHash: Buffer;
  readonly expiresAt: Date;
}

export class Operators {
  constructor(private readonly sql: Sql) {}

  /** Returns `'taken'` if the name is in use and `'tooMany'` if the maximum is reached. */
  async create(
    actor: string,
    wanted: StoredKey & { name: string; role: Role; expiresAt: Date | null },
  ): Promise<OperatorRow | 'taken' | 'tooMany'> {
    const isSupport = wanted.role === 'support';
    return withChange(this.sql, async (tx, changed) => {
      const [known] = await tx<{ total: bigint; isTaken: boolean | null }[]>`
        SELECT count(*) AS total, bool_or(name = ${wanted.name}) AS is_taken FROM operators`;
      if (known!.isTaken === true) return 'taken';
      if (known!.total >= BigInt(OPERATORS_MAX)) return 'tooMany';
      const [row] = await tx<Row[]>`
        INSERT INTO operators (name, role, is_support, key_hash, prefix, expires_at, changed)
        VALUES (${wanted.name}, ${isSupport ? 'auditor' : wanted.role}, ${isSupport}, ${wanted.hash}, ${wanted.prefix},
          ${wanted.expiresAt}, ${changed}) RETURNING ${COLUMNS}`;
      const made = fromRow(row!);
      await writeAuditEntry(tx, {
        actor,
        action: 'operator.create',
        subject: `operator:${made.name}`,
        after: made,
      });
      return made;
    });
  }

  async list(): Promise<OperatorRow[]> {
    const rows = await this.sql<Row[]>`SELECT ${COLUMNS} FROM operators ORDER BY name LIMIT ${OPERATORS_MAX}`;
    return rows.map(fromRow);
  }

  /**
   * Replaces an operator's key and ends its sessions.
   * @returns undefined if there is no such operator or it is revoked
   */
  async rotateKey(
    actor: string,
    name: string,
    key: StoredKey & { expiresAt: Date | null },
    reason?: string,
  ): Promise<OperatorRow | undefined> {
    return withChange(this.sql, async (tx, changed) => {
      const [before] = await tx<Row[]>`
        SELECT ${COLUMNS} FROM operators WHERE name = ${name} AND revoked_at IS NULL FOR UPDATE`;
      if (before === undefined) return undefined;
      const [row] = await tx<Row[]>`
        UPDATE operators SET key_hash = ${key.hash}, prefix = ${key.prefix}, expires_at = ${key.expiresAt}, issued_at = now(),
          changed = ${changed}
        WHERE name = ${name} RETURNING ${COLUMNS}`;
      await tx`DELETE FROM operator_sessions WHERE key_hash = ${before.keyHash}`;
      const subject = `operator:${name}`;
      const after = fromRow(row!);
      await writeAuditEntry(tx, {
        actor,
        action: 'operator.rotate-key',
        subject,
        before: fromRow(before),
        after: { ...after, ...because(reason) },
      });
      return after;
    });
  }

  /** Revokes an operator's key and ends its sessions. A second call changes nothing. */
  async revoke(actor: string, name: string, reason?: string): Promise<'revoked' | 'missing'> {
    return withChange(this.sql, async (tx, changed) => {
      const [before] = await tx<Row[]>`SELECT ${COLUMNS} FROM operators WHERE name = ${name} FOR UPDATE`;
      if (before === undefined) return 'missing';
      if (before.revokedAt !== null) return 'revoked';
      const [row] = await tx<Row[]>`
        UPDATE operators SET revoked_at = now(), changed = ${changed} WHERE name = ${name} RETURNING ${COLUMNS}`;
      await tx`DELETE FROM operator_sessions WHERE key_hash = ${before.keyHash}`;
      const subject = `operator:${name}`;
      const after = { revokedAt: row!.revokedAt, ...because(reason) };
      await writeAuditEntry(tx, {
        actor,
        action: 'operator.revoke',
        subject,
        before: { revokedAt: null },
        after,
      });
      return 'revoked';
    });
  }

  /**
   * Begins a session and deletes expired ones. A session ends no later than its key.
   * @returns the time when the session ends
   */
  async beginSession(
    actor: string,
    session: { sessionHash: Buffer; keyHash: Buffer; minutes: number },
  ): Promise<Date> {
    return this.sql.begin(async (tx) => {
      await tx`DELETE FROM operator_sessions WHERE expires_at <= now()`;
      // Because of the lock, sign-ins with one key wait for each other, so that the maximum number of
      // sessions is kept.
      await tx`SELECT pg_advisory_xact_lock(7310013, hashtext(encode(${session.keyHash}, 'hex')))`;
      await tx`
        DELETE FROM operator_sessions WHERE session_hash IN (
          SELECT session_hash FROM operator_sessions WHERE key_hash = ${session.keyHash}
          ORDER BY created_at DESC, session_hash OFFSET ${SESSIONS_PER_KEY_MAX - 1})`;
      const [row] = await tx<{ expiresAt: Date }[]>`
        INSERT INTO operator_sessions (session_hash, key_hash, expires_at)
        VALUES (${session.sessionHash}, ${session.keyHash}, least(
          now() + ${session.minutes}::int * interval '1 minute',
          (SELECT expires_at FROM operators WHERE key_hash = ${session.keyHash})))
        RETURNING expires_at`;
      const after = { expiresAt: row!.expiresAt };
      await writeAuditEntry(tx, { actor, action: 'session.begin', subject: `operator:${actor}`, after });
      return row!.expiresAt;
    });
  }

  /** Finds a session that has not expired. The caller must still check its key. */
  async findSession(sessionHash: Buffer): Promise<SessionRow | undefined> {
    const [row] = await this.sql<{ keyHash: Buffer; expiresAt: Date }[]>`
      SELECT key_hash, expires_at FROM operator_sessions WHERE session_hash = ${sessionHash} AND expires_at > now()`;
    return row === undefined ? undefined : { keyHash: row.keyHash, expiresAt: row.expiresAt };
  }

  async endSession(actor: string, sessionHash: Buffer): Promise<void> {
    await this.sql.begin(async (tx) => {
      const ended =
        await tx`DELETE FROM operator_sessions WHERE session_hash = ${sessionHash} RETURNING expires_at`;
      if (ended.length > 0)
        await writeAuditEntry(tx, { actor, action: 'session.end', subject: `operator:${actor}` });
    });
  }
}
