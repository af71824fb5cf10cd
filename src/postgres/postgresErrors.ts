/** What an error of Postgres, or of the way to it, means. */
import { DatabaseError } from 'pg';
import { VolatilePostgresError } from './postgresDurability.js';

/** SQLSTATE of a unique constraint that refused a row. */
const UNIQUE_VIOLATION = '23505';

/** SQLSTATE serialization_failure and deadlock_detected: the transaction was undone for another one, and may run again. */
export const isConflict = (error: unknown): boolean =>
  error instanceof DatabaseError && (error.code === '40001' || error.code === '40P01');

export function isUniqueViolation(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === UNIQUE_VIOLATION;
}

/** Of the driver and of sockets: what says that the server does not answer. */
const AWAY =
  /Connection terminated|not queryable|timeout exceeded|Query read timeout|ECONN|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENOTFOUND/;

/**
 * SQLSTATE: connection exceptions, a session that ended because this process was slower than IDLE_IN_TRANSACTION_MS, a
 * transaction that others made impossible (a deadlock), insufficient resources, a server that stops or starts, a statement
 * that took too long.
 */
const AWAY_STATE = /^(08|25P03|40|53|57)/;

/** Postgres does not answer now, whatever is asked. */
export function isPostgresAway(error: unknown): boolean {
  if (error instanceof VolatilePostgresError) return true;
  if (error instanceof DatabaseError) return AWAY_STATE.test(error.code ?? '');
  const { code, message } = error as { code?: unknown; message?: unknown };
  return AWAY.test(`${code} ${message}`);
}

/** SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation). */
const DATA_FAULT = /^2[23]/;

/**
 * A statement failed for what it was given, and would fail again: the store is there. PostgreSQL documentation, appendix A.
 * A RangeError is the same of this program: a value that is not what it can be.
 */
export const isDataFault = (error: unknown): boolean =>
  error instanceof RangeError || (error instanceof DatabaseError && DATA_FAULT.test(error.code ?? ''));
