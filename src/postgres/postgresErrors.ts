/** Classifies errors of Postgres and of the connection to it. */
import { DatabaseError } from 'pg';
import { isUnreachable } from '../platform/unreachable.js';
import { VolatilePostgresError } from './postgresDurability.js';

/** SQLSTATE of a violated unique constraint. */
const UNIQUE_VIOLATION = '23505';

/**
 * Returns whether an error is a serialization_failure or deadlock_detected. The transaction was rolled back
 * in favour of another transaction and may be repeated.
 */
export const isConflict = (error: unknown): boolean =>
  error instanceof DatabaseError && (error.code === '40001' || error.code === '40P01');

export function isUniqueViolation(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === UNIQUE_VIOLATION;
}

/** No connection could be opened, whatever the reason. Nothing was sent. */
export class NoConnectionError extends Error {}

/**
 * The server is a standby, or only reads. A failover behind one address leads connections to such a server,
 * or turns their server into one.
 */
export class StandbyError extends NoConnectionError {
  constructor() {
    super('Postgres is a standby, which accepts no writes');
  }
}

/** Functions of Postgres that refuse a writing transaction on a standby, whatever the server's language. */
const REFUSES_WRITES = /^check_(XactReadOnly|transaction_read_only)$/;

/**
 * Returns whether an error shows that a connection leads to a server that accepts no writes. Such a
 * connection must be closed. Transactions of this service write unless they say otherwise, so a
 * read_only_sql_transaction has no other cause.
 */
export const isStandby = (error: unknown): boolean =>
  error instanceof StandbyError ||
  (error instanceof DatabaseError && (error.code === '25006' || REFUSES_WRITES.test(error.routine ?? '')));

/** Messages of the driver which mean that the server does not respond. */
const AWAY = /Connection terminated|not queryable|timeout exceeded|Query read timeout/;

/**
 * SQLSTATEs that count as unavailable: connection exceptions, a session that ended because this process was
 * slower than IDLE_IN_TRANSACTION_MS, a transaction rolled back because of others (a deadlock), insufficient
 * resources, a server that stops or starts, and a statement that took too long.
 */
const AWAY_STATE = /^(08|25P03|40|53|57)/;

/** Returns whether an error means that Postgres is unavailable at the moment, whatever the statement was. */
export function isPostgresAway(error: unknown): boolean {
  if (error instanceof VolatilePostgresError || error instanceof NoConnectionError) return true;
  if (error instanceof DatabaseError) return isStandby(error) || AWAY_STATE.test(error.code ?? '');
  return isUnreachable(error) || AWAY.test(String((error as { message?: unknown } | null)?.message));
}

/** SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation). */
const DATA_FAULT = /^2[23]/;

/**
 * Returns whether a statement failed because of its data and would fail again, although the store is
 * available (PostgreSQL documentation, appendix A). A RangeError of this service counts, too: it reports a
 * value outside its permitted range.
 */
export const isDataFault = (error: unknown): boolean =>
  error instanceof RangeError || (error instanceof DatabaseError && DATA_FAULT.test(error.code ?? ''));

/** SQLSTATE disk_full. */
const DISK_FULL = '53100';
/** Time after which a shortage counts as over if no statement has met it again, in ms. */
const SHORTAGE_LASTS_MS = 30_000;

/** Remembers that Postgres lacked disk, memory or connections for a statement (SQLSTATE class 53). */
export class Shortage {
  #found: { readonly message: string; readonly since: Date; readonly untilMs: number } | undefined;

  failed(thrown: unknown): void {
    const error = thrown instanceof NoConnectionError ? thrown.cause : thrown;
    if (!(error instanceof DatabaseError) || !error.code?.startsWith('53')) return;
    const what = error.code === DISK_FULL ? 'The disk of Postgres is full' : 'Postgres lacks resources';
    const since = this.current?.since ?? new Date();
    this.#found = {
      message: `${what}: ${error.message}`,
      since,
      untilMs: performance.now() + SHORTAGE_LASTS_MS,
    };
  }

  /** Called when entries of the ledger were committed, which need disk. */
  over(): void {
    this.#found = undefined;
  }

  get current(): { readonly message: string; readonly since: Date } | undefined {
    return this.#found !== undefined && performance.now() < this.#found.untilMs ? this.#found : undefined;
  }
}
