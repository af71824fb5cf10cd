/** Stores API keys. Only the SHA-256 and the prefix of a key are stored (docs/contract.md §3). */
import type { StoredKey } from '../../domain/apiKey.js';
import { because, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';

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

interface Row {
  key_id: number;
  partner_id: number;
  name: string | null;
  prefix: string | null;
  created_at: Date;
  expires_at: Date | null;
  revoked_at: Date | null;
  last_used_at: Date | null;
}

const fromRow = (row: Row): ApiKeyRow => ({
  keyId: row.key_id,
  partnerId: row.partner_id,
  name: row.name,
  prefix: row.prefix,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
  lastUsedAt: row.last_used_at,
});

export class ApiKeys {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async issue(
    actor: string,
    key: StoredKey & { partnerId: number; name: string | null; expiresAt: Date | null },
  ): Promise<ApiKeyRow> {
    return withChange(this.#sql, async (tx, changed) => {
      const [row] = await tx<Row[]>`
        INSERT INTO api_keys (partner_id, key_hash, prefix, name, expires_at, changed)
        VALUES (${key.partnerId}, ${key.hash}, ${key.prefix}, ${key.name}, ${key.expiresAt}, ${changed})
        RETURNING key_id, partner_id, name, prefix, created_at, expires_at, revoked_at, last_used_at`;
      const issued = fromRow(row!);
      await writeAuditEntry(tx, {
        actor,
        action: 'key.issue',
        subject: `key:${issued.keyId}`,
        after: issued,
      });
      return issued;
    });
  }

  async list(partnerId: number): Promise<ApiKeyRow[]> {
    const rows = await this.#sql<Row[]>`
      SELECT key_id, partner_id, name, prefix, created_at, expires_at, revoked_at, last_used_at
      FROM api_keys WHERE partner_id = ${partnerId} ORDER BY key_id`;
    return rows.map(fromRow);
  }

  /** Revokes a key. Revoking a revoked key changes nothing. */
  async revoke(
    actor: string,
    partnerId: number,
    keyId: number,
    reason?: string,
  ): Promise<'revoked' | 'missing' | 'foreign'> {
    return withChange(this.#sql, async (tx, changed) => {
      const [row] = await tx<{ partner_id: number; revoked_at: Date | null }[]>`
        SELECT partner_id, revoked_at FROM api_keys WHERE key_id = ${keyId} FOR UPDATE`;
      if (row === undefined) return 'missing';
      if (row.partner_id !== partnerId) return 'foreign';
      if (row.revoked_at === null) {
        const [revoked] = await tx<{ revoked_at: Date }[]>`
          UPDATE api_keys SET revoked_at = now(), changed = ${changed} WHERE key_id = ${keyId} RETURNING revoked_at`;
        await writeAuditEntry(tx, {
          actor,
          action: 'key.revoke',
          subject: `key:${keyId}`,
          before: { revokedAt: null },
          after: { revokedAt: revoked!.revoked_at, ...because(reason) },
        });
      }
      return 'revoked';
    });
  }
}
