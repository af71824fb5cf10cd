/**
 * The audit log and the change numbers. Each change of data that the front ends hold in memory (partners,
 * keys, games) gets the next number of `change_number` under one advisory lock. The numbers thus become
 * visible in their order, and a reader that asks for everything after the newest number that it knows misses
 * nothing.
 */

import { createHash } from 'node:crypto';
import type { Static } from '#typebox';
import type {
  AuditEntry as AuditEntrySchema,
  AuditQuery as AuditQuerySchema,
  StatusChange as StatusChangeSchema,
} from '../domain/auditEntry.js';
import type { WithDates } from '../domain/schema.js';
import type { AuditAction } from '../domain/significantEvents.js';
import type { Sql, Transaction } from './connection.js';
import { raw } from './statements.js';

const CHANGE_LOCK = 7_310_001;

/** Runs writes in one transaction. `changed` is the change number to write to the modified rows. */
export async function withChange<T>(
  sql: Sql,
  write: (tx: Transaction, changed: bigint) => Promise<T>,
): Promise<T> {
  return sql.begin(async (tx) => write(tx, await nextChange(tx)));
}

/** Other transactions that need a change number wait until this transaction ends. */
export async function nextChange(tx: Transaction): Promise<bigint> {
  await tx`SELECT pg_advisory_xact_lock(${CHANGE_LOCK})`;
  const [row] = await tx<{ changed: bigint }[]>`SELECT nextval('change_number') AS changed`;
  return row!.changed;
}

/**
 * SQL that returns whether no change is under way. In that case every assigned number is either committed or
 * never will be. The SQL may be used once in a statement.
 */
export const NOBODY_CHANGES = raw(`SELECT pg_try_advisory_xact_lock_shared(${CHANGE_LOCK})`);

export interface NewAuditEntry {
  /** Actor of the audited change, such as `operator`. */
  readonly actor: string;
  /** Audited action, such as `partner.create`. */
  readonly action: AuditAction;
  /** Subject of the audited action, such as `partner:7`. */
  readonly subject: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Converts a value to JSON text, with bigints as decimal text. */
const json = (value: unknown): string | null =>
  value === undefined
    ? null
    : JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? String(member) : member));

export async function writeAuditEntry(tx: Transaction, entry: NewAuditEntry): Promise<void> {
  await tx`
    INSERT INTO audit_log (actor, action, subject, before, after)
    VALUES (${entry.actor}, ${entry.action}, ${entry.subject}, ${json(entry.before)}, ${json(entry.after)})`;
}

/** Returns the field that records the reason of a change in an audit entry. */
export const because = (reason: string | undefined): { reason?: string } =>
  reason === undefined ? {} : { reason };

export type AuditRow = WithDates<typeof AuditEntrySchema, 'at'>;
export type StatusChange = WithDates<typeof StatusChangeSchema, 'at'>;

/** Filter for audit entries. A field that is absent matches all entries. */
export interface AuditFilter
  extends Readonly<Pick<Static<typeof AuditQuerySchema>, 'actor' | 'action' | 'subject'>> {
  /** Start of the entries' time, inclusive. */
  readonly from?: Date | undefined;
  /** End of the entries' time, exclusive. */
  readonly to?: Date | undefined;
}

/** Position of entries in a list, newest first. */
interface Place {
  readonly limit: number;
  readonly offset?: number;
  /** Only entries with a smaller id. */
  readonly belowId?: number | undefined;
}

export class AuditLog {
  constructor(private readonly sql: Sql) {}

  /** Records an operator's action on a round before it is carried out. */
  recordRound(actor: string, action: AuditAction, roundId: string, after: unknown): Promise<void> {
    return this.sql.begin((tx) => writeAuditEntry(tx, { actor, action, subject: `round:${roundId}`, after }));
  }

  /** Reads a page of the audit log, newest first, with the total number of entries. */
  async page(
    page: number,
    limit: number,
    filter: AuditFilter = {},
  ): Promise<{ entries: AuditRow[]; total: number }> {
    const entries = await this.#entries(filter, { limit, offset: (page - 1) * limit });
    const { actor, action = '', subject = '', from, to } = filter;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM audit_log
      WHERE actor = coalesce(${actor ?? null}::text, actor) AND starts_with(action, ${action}) AND starts_with(subject, ${subject})
        AND at >= coalesce(${from ?? null}::timestamptz, at) AND at < coalesce(${to ?? null}::timestamptz, 'infinity')`;
    return { entries, total: Number(count!.total) };
  }

  /** Reads the newest entries below an id, newest first, or the newest of all entries if there is no id. */
  below(belowId: number | undefined, limit: number, filter: AuditFilter): Promise<AuditRow[]> {
    return this.#entries(filter, { limit, belowId });
  }

  /** Reads the newest change of a subject's status; null if nobody has changed it. */
  async newestStatus(
    action: 'game.update' | 'player.status' | 'raffle.void',
    subject: string,
  ): Promise<StatusChange | null> {
    const [row] = await this.sql<
      { auditId: bigint; at: Date; actor: string; after: { status?: string; reason?: string } }[]
    >`
      SELECT audit_id, at, actor, after FROM audit_log WHERE subject = ${subject} AND action = ${action}
      ORDER BY audit_id DESC LIMIT 1`;
    if (row === undefined) return null;
    const { auditId, at, actor, after } = row;
    const status = action === 'raffle.void' ? 'CLOSED' : after.status!;
    return { auditId: Number(auditId), at, actor, status, reason: after.reason ?? null };
  }

  async #entries(
    { actor, action = '', subject = '', from, to }: AuditFilter,
    { limit, offset = 0, belowId }: Place,
  ): Promise<AuditRow[]> {
    const rows = await this.sql<
      {
        auditId: bigint;
        at: Date;
        actor: string;
        action: string;
        subject: string;
        before: unknown;
        after: unknown;
        hash: Buffer;
      }[]
    >`
      SELECT audit_id, at, actor, action, subject, before, after, hash FROM audit_log
      WHERE actor = coalesce(${actor ?? null}::text, actor) AND starts_with(action, ${action}) AND starts_with(subject, ${subject})
        AND at >= coalesce(${from ?? null}::timestamptz, at) AND at < coalesce(${to ?? null}::timestamptz, 'infinity')
        AND audit_id < ${belowId ?? AUDIT_ID_END}
      ORDER BY audit_id DESC LIMIT ${limit} OFFSET ${offset}`;
    return rows.map((row) => ({
      auditId: Number(row.auditId),
      at: row.at,
      actor: row.actor,
      action: row.action,
      subject: row.subject,
      before: row.before,
      after: row.after,
      hash: row.hash.toString('hex'),
    }));
  }
}

/** An id above the ids of all entries. */
const AUDIT_ID_END = Number.MAX_SAFE_INTEGER;

const PAGE = 1000;

export interface ChainFault {
  readonly auditId: number;
  readonly problem: string;
}

interface Row {
  auditId: bigint;
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
 * State of the audit log that the public log contains: its number of entries and the hash of the newest
 * entry, in hexadecimal.
 */
export interface AuditAnchor {
  readonly entries: number;
  readonly head: string;
}

/**
 * Verifies the whole audit log, oldest entry first.
 * @param anchors states of the audit log that the public log contains
 * @returns the number of entries, the hash of the newest entry in hexadecimal, which covers all entries, and
 * the faults
 */
export async function auditChain(
  sql: Sql,
  anchors: readonly AuditAnchor[] = [],
): Promise<{ entries: number; head: string | undefined; faults: ChainFault[] }> {
  const faults: ChainFault[] = [];
  const heads = new Map(anchors.map(({ entries, head }) => [entries, head]));
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
        String(row.auditId),
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
          auditId: Number(row.auditId),
          problem: 'the hash does not match the entry and the previous hash',
        });
      }
      previous = row.hash;
      newest = row.auditId;
      const head = heads.get(++entries);
      heads.delete(entries);
      if (head !== undefined && head !== previous.toString('hex'))
        faults.push({
          auditId: Number(row.auditId),
          problem: 'the public log has another hash for this entry',
        });
    }
    if (rows.length === PAGE) continue;
    for (const beyond of heads.keys())
      faults.push({
        auditId: Number(newest ?? 0),
        problem: `the public log records ${beyond} entries, but the audit log has fewer`,
      });
    return { entries, head: previous?.toString('hex'), faults };
  }
}
