/**
 * Changes of what the front ends hold in memory (partners, keys, games). Each gets the next number of `change_number`
 * under one advisory lock, so that numbers become visible in their order and a reader that asks for everything after
 * the highest number it has seen misses nothing.
 */
import type { Sql, Transaction } from './client.js';

const CHANGE_LOCK = 7_310_001;

/** Runs the writes in one transaction; `changed` goes into the rows that they touch. */
export async function withChange<T>(
  sql: Sql,
  write: (tx: Transaction, changed: bigint) => Promise<T>,
): Promise<T> {
  return sql.begin(async (tx) => write(tx, await nextChange(tx)));
}

/** The number for what a transaction changes; others that change something wait from here on until it ends. */
export async function nextChange(tx: Transaction): Promise<bigint> {
  await tx`SELECT pg_advisory_xact_lock(${CHANGE_LOCK})`;
  const [row] = await tx<{ changed: bigint }[]>`SELECT nextval('change_number') AS changed`;
  return row!.changed;
}

export interface AuditEntry {
  /** Who did it, such as `operator`. */
  readonly actor: string;
  /** What was done, such as `partner.create`. */
  readonly action: string;
  /** What it was done to, such as `partner:7`. */
  readonly subject: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Writes down a change of the operator's, in the transaction that makes it. */
export async function audit(tx: Transaction, entry: AuditEntry): Promise<void> {
  const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
  await tx`
    INSERT INTO audit_log (actor, action, subject, before, after)
    VALUES (${entry.actor}, ${entry.action}, ${entry.subject}, ${json(entry.before)}, ${json(entry.after)})`;
}

/** Writes down what the operator does to a round, before it is done. */
export const auditRound = (
  sql: Sql,
  actor: string,
  action: string,
  roundId: string,
  after: unknown,
): Promise<void> => sql.begin((tx) => audit(tx, { actor, action, subject: `round:${roundId}`, after }));

export interface AuditRow {
  auditId: number;
  at: string;
  actor: string;
  action: string;
  subject: string;
  before: unknown;
  after: unknown;
}

/** Of whom, or of what, entries are wanted; a text that is absent matches all. */
export interface AuditFilter {
  readonly actor?: string | undefined;
  /** How the action, or the subject, begins. */
  readonly action?: string | undefined;
  readonly subject?: string | undefined;
}

/** A page of the audit log, newest first, and how many entries there are. */
export async function auditPage(
  sql: Sql,
  page: number,
  limit: number,
  { actor, action = '', subject = '' }: AuditFilter = {},
): Promise<{ entries: AuditRow[]; total: number }> {
  const rows = await sql<
    {
      audit_id: bigint;
      at: Date;
      actor: string;
      action: string;
      subject: string;
      before: unknown;
      after: unknown;
    }[]
  >`
    SELECT audit_id, at, actor, action, subject, before, after FROM audit_log
    WHERE actor = coalesce(${actor ?? null}::text, actor) AND starts_with(action, ${action}) AND starts_with(subject, ${subject})
    ORDER BY audit_id DESC LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
  const [count] = await sql<{ total: bigint }[]>`
    SELECT count(*) AS total FROM audit_log
    WHERE actor = coalesce(${actor ?? null}::text, actor) AND starts_with(action, ${action}) AND starts_with(subject, ${subject})`;
  return {
    entries: rows.map((row) => ({
      auditId: Number(row.audit_id),
      at: row.at.toISOString(),
      actor: row.actor,
      action: row.action,
      subject: row.subject,
      before: row.before,
      after: row.after,
    })),
    total: Number(count!.total),
  };
}
