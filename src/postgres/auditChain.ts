/** Checks the chain of the audit log: each entry's hash covers the entry and the hash before (migrations/0015_audit_chain.sql). */
import { createHash } from 'node:crypto';
import type { Sql } from './client.js';

const PAGE = 1000;

export interface ChainFault {
  readonly auditId: number;
  readonly problem: string;
}

interface Row {
  audit_id: bigint;
  at: string;
  actor: string;
  action: string;
  subject: string;
  before: string | null;
  after: string | null;
  hash: Buffer;
}

const member = (value: string | null): string =>
  value === null ? '-' : `${Buffer.byteLength(value)}:${value}`;

/**
 * Reads the whole log, oldest first.
 * @returns how many entries there are, the hash of the newest (hexadecimal; it stands for all of them), and what is wrong.
 */
export async function auditChain(
  sql: Sql,
): Promise<{ entries: number; head: string | undefined; faults: ChainFault[] }> {
  const faults: ChainFault[] = [];
  let previous: Buffer | undefined;
  let newest: bigint | undefined;
  let entries = 0;
  for (;;) {
    const rows = await sql<Row[]>`
      SELECT audit_id, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, actor, action, subject,
        before::text AS before, after::text AS after, hash
      FROM audit_log WHERE audit_id > ${newest ?? 0n} ORDER BY audit_id LIMIT ${PAGE}`;
    for (const row of rows) {
      const members = [
        String(row.audit_id),
        row.at,
        row.actor,
        row.action,
        row.subject,
        row.before,
        row.after,
      ];
      const hash = createHash('sha256');
      if (previous !== undefined) hash.update(previous);
      const expected = hash.update(members.map(member).join('')).digest();
      if (!expected.equals(row.hash)) {
        faults.push({
          auditId: Number(row.audit_id),
          problem: 'the hash is not that of the entry and the one before',
        });
      }
      previous = row.hash;
      newest = row.audit_id;
      entries++;
    }
    if (rows.length < PAGE) return { entries, head: previous?.toString('hex'), faults };
  }
}
