/** Stores API keys. Only the SHA-256 and the prefix of a key are stored (docs/contract.md §3). */
import type { StoredKey } from '../../domain/apiKey.js';
import { because, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';

export interface ApiKeyRow {
  keyId: number;
  partnerId: number;
  name: string | null;
  /** First characters of the key; null for a key that was made before prefixes were stored. */
  prefix: string | null;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
}

const COLUMNS = raw('key_id, partner_id, name, prefix, created_at, expires_at, revoked_at, last_used_at');

/** Why a key can't be changed: it does not exist, belongs to another partner, or is no longer valid. */
export type Unchangeable = 'missing' | 'foreign' | 'revoked' | 'expired';

type NewKey = StoredKey & { readonly name: string | null; readonly expiresAt: Date | null };

export class ApiKeys {
  constructor(private readonly sql: Sql) {}

  async issue(actor: string, key: NewKey & { readonly partnerId: number }): Promise<ApiKeyRow> {
    return withChange(this.sql, (tx, changed) => insertKey(tx, changed, actor, key, {}));
  }

  /** The notices of the expiry follow for the new time. */
  async setExpiry(
    actor: string,
    partnerId: number,
    keyId: number,
    expiresAt: Date | null,
    reason?: string,
  ): Promise<ApiKeyRow | Unchangeable> {
    return withChange(this.sql, async (tx, changed) => {
      const key = await lockValid(tx, partnerId, keyId);
      return typeof key === 'string' ? key : moveExpiry(tx, changed, actor, key, expiresAt, reason);
    });
  }

  /**
   * Issues a key that replaces a valid key, and lets the replaced key expire after an overlap, unless it
   * expires earlier anyway.
   * @param key.name null: the name of the replaced key
   * @param overlapSeconds time for which both keys are valid
   */
  async rotate(
    actor: string,
    partnerId: number,
    keyId: number,
    key: NewKey,
    { overlapSeconds, reason }: { readonly overlapSeconds: number; readonly reason: string | undefined },
  ): Promise<{ issued: ApiKeyRow; replaced: ApiKeyRow } | Unchangeable> {
    return withChange(this.sql, async (tx, changed) => {
      const before = await lockValid(tx, partnerId, keyId);
      if (typeof before === 'string') return before;
      const [clock] = await tx<{ ends: Date }[]>`
        SELECT now() + make_interval(secs => ${overlapSeconds}) AS ends`;
      const { ends } = clock!;
      const named = { ...key, partnerId, name: key.name ?? before.name };
      const issued = await insertKey(tx, changed, actor, named, { replaces: keyId, ...because(reason) });
      const isEarlier = before.expiresAt !== null && before.expiresAt <= ends;
      const replaced = isEarlier ? before : await moveExpiry(tx, changed, actor, before, ends, reason);
      return { issued, replaced };
    });
  }

  async list(partnerId: number): Promise<ApiKeyRow[]> {
    return this.sql<ApiKeyRow[]>`
      SELECT ${COLUMNS} FROM api_keys WHERE partner_id = ${partnerId} ORDER BY key_id`;
  }

  /** Revoking a revoked key changes nothing. */
  async revoke(
    actor: string,
    partnerId: number,
    keyId: number,
    reason?: string,
  ): Promise<'revoked' | 'missing' | 'foreign'> {
    return withChange(this.sql, async (tx, changed) => {
      const [row] = await tx<{ partnerId: number; revokedAt: Date | null }[]>`
        SELECT partner_id, revoked_at FROM api_keys WHERE key_id = ${keyId} FOR UPDATE`;
      if (row === undefined) return 'missing';
      if (row.partnerId !== partnerId) return 'foreign';
      if (row.revokedAt === null) {
        const [revoked] = await tx<{ revokedAt: Date }[]>`
          UPDATE api_keys SET revoked_at = now(), changed = ${changed} WHERE key_id = ${keyId} RETURNING revoked_at`;
        await writeAuditEntry(tx, {
          actor,
          action: 'key.revoke',
          subject: `key:${keyId}`,
          before: { revokedAt: null },
          after: { revokedAt: revoked!.revokedAt, ...because(reason) },
        });
      }
      return 'revoked';
    });
  }
}

async function insertKey(
  tx: Transaction,
  changed: bigint,
  actor: string,
  key: NewKey & { readonly partnerId: number },
  noted: object,
): Promise<ApiKeyRow> {
  const [row] = await tx<ApiKeyRow[]>`
    INSERT INTO api_keys (partner_id, key_hash, prefix, name, expires_at, changed)
    VALUES (${key.partnerId}, ${key.hash}, ${key.prefix}, ${key.name}, ${key.expiresAt}, ${changed})
    RETURNING ${COLUMNS}`;
  const issued = row!;
  await writeAuditEntry(tx, {
    actor,
    action: 'key.issue',
    subject: `key:${issued.keyId}`,
    after: { ...issued, ...noted },
  });
  return issued;
}

/** Locks a key that is neither revoked nor expired. */
async function lockValid(
  tx: Transaction,
  partnerId: number,
  keyId: number,
): Promise<ApiKeyRow | Unchangeable> {
  const [row] = await tx<(ApiKeyRow & { isExpired: boolean })[]>`
    SELECT ${COLUMNS}, coalesce(expires_at <= now(), false) AS is_expired FROM api_keys
    WHERE key_id = ${keyId} FOR UPDATE`;
  if (row === undefined) return 'missing';
  if (row.partnerId !== partnerId) return 'foreign';
  if (row.revokedAt !== null) return 'revoked';
  const { isExpired, ...key } = row;
  return isExpired ? 'expired' : key;
}

async function moveExpiry(
  tx: Transaction,
  changed: bigint,
  actor: string,
  before: ApiKeyRow,
  expiresAt: Date | null,
  reason: string | undefined,
): Promise<ApiKeyRow> {
  const { keyId } = before;
  const [row] = await tx<ApiKeyRow[]>`
    UPDATE api_keys SET expires_at = ${expiresAt}, changed = ${changed} WHERE key_id = ${keyId} RETURNING ${COLUMNS}`;
  // The partner is notified of the new expiry, even if it was notified of the old one.
  await tx`DELETE FROM key_notices WHERE key_id = ${keyId}`;
  const after = row!;
  await writeAuditEntry(tx, {
    actor,
    action: 'key.expiry',
    subject: `key:${keyId}`,
    before: { expiresAt: before.expiresAt },
    after: { expiresAt: after.expiresAt, ...because(reason) },
  });
  return after;
}
