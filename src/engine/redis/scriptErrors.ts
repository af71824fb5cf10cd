/**
 * Classifies the errors of script calls, from the error replies of Redis and the errors of the client
 * library.
 */
import { TimeoutError } from '../../platform/runtime/withTimeout.js';
import { isUnreachable } from '../../platform/unreachable.js';
import { type Script, withPlaces } from './scriptLoader.js';

/**
 * The cell's epoch differs from the epoch that the caller expects, or Redis has lost the epoch. Nothing was
 * done.
 */
export class EpochError extends Error {}
/** The partner has left the cell or is about to leave it. Nothing was done. */
class AwayError extends EpochError {}
/** A block to be loaded does not begin at the queue's end. Nothing was done. */
export class GapError extends Error {
  readonly queueEnd: number;
  constructor(queueEnd: number) {
    super(`The queue ends at ${queueEnd}`);
    this.queueEnd = queueEnd;
  }
}

/** The connection was not usable, so the call never left this process. */
export class NotSentError extends Error {}
/**
 * The node does not hold the cell: another node holds the cell, or no node of the cluster serves it at the
 * moment. Nothing was done.
 */
export class NotHereError extends NotSentError {}
/**
 * Redis has already seen a newer batch of the same front end. This call did nothing, but an earlier attempt
 * may have been executed.
 */
export class StaleError extends Error {}
/** The caller's filters lack request ids that have been released. Nothing was done. */
export class BehindError extends Error {}
/** A later owner of the cell has written to it. Nothing was done. */
export class OutrunError extends Error {}
/** Redis refused the script before running it (out of memory, loading, read only, …). Nothing was done. */
export class RefusedError extends Error {}

/**
 * The clock of the caller differs too much from the clock of Redis or the cell's newest entry. Nothing was
 * done.
 */
export class ClockError extends RefusedError {
  /**
   * Time by which the clock of Redis, or the newest entry, is ahead of the caller, in ms. Negative if it is
   * behind.
   */
  readonly skewMs: number;
  constructor(skewMs: number) {
    super(
      `The clock of Redis, or the cell's newest entry, is ${skewMs} ms ahead of the clock of this process`,
    );
    this.skewMs = skewMs;
  }
}

/**
 * The cell lacks an entry that the caller has answered, because an older copy of the data has taken over and
 * has not been recognized yet. Nothing was done.
 */
export class LacksError extends RefusedError {}

/** Error replies that Redis sends before it executes any part of a script. */
const REFUSED =
  /^(OOM|LOADING|READONLY|MISCONF|MASTERDOWN|UNBLOCKED|BUSY|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS)/;

/**
 * Errors that a server of a cluster returns for keys that it does not hold. A script reads keys before it
 * writes, so nothing was done even if the error occurred in the middle of a script. Redirects are never
 * followed; the next attempt uses the map from cells to nodes.
 */
const NOT_HERE = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) |access a non local key/;

/** Error of the client library for a call that it never sent. */
const NOT_SENT = /^Stream isn't writeable/;

/** Errors of the client library which mean that the server does not respond. */
const AWAY = /^(Stream isn't writeable|Connection is closed|Command timed out)|max retries per request/;

/** True if Redis does not respond or accepts no commands at the moment. */
export const isRedisAway = (error: unknown): boolean =>
  error instanceof NotSentError ||
  error instanceof RefusedError ||
  error instanceof TimeoutError ||
  isUnreachable(error) ||
  REFUSED.test(messageOf(error)) ||
  AWAY.test(messageOf(error)) ||
  NOT_HERE.test(messageOf(error));

export const isForbidden = (error: unknown): boolean => messageOf(error).startsWith('NOPERM');

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Converts an error reply, or an error of the client library, to one of the error classes above. Other errors
 * are returned with their location in lua/.
 */
export function asScriptError(error: unknown, script: Script): unknown {
  const message = messageOf(error);
  if (message.startsWith('EPOCH'))
    return new EpochError(`The cell has epoch ${message.slice(6)}, not the epoch of this call`);
  if (message.startsWith('AWAY')) return new AwayError('The partner has left the cell');
  if (message.startsWith('FORMAT'))
    return new RefusedError(
      `The cell may have data of format ${message.slice(7)}, which this version can't read`,
    );
  if (message.startsWith('LACKS')) return new LacksError(message);
  if (message.startsWith('CLOCK')) return new ClockError(Number(message.slice(6)));
  if (message.startsWith('STALE'))
    return new StaleError('Redis has already seen a newer batch of this front end');
  if (message.startsWith('BEHIND'))
    return new BehindError('The filters of this front end lack request ids that Redis has released');
  if (message.startsWith('FENCED')) return new OutrunError('A later owner has already written to the cell');
  if (NOT_HERE.test(message)) return new NotHereError(message, { cause: error });
  if (NOT_SENT.test(message)) return new NotSentError(message, { cause: error });
  if (message.startsWith('GAP')) return new GapError(Number(message.slice(4)));
  if (REFUSED.test(message)) return new RefusedError(message, { cause: error });
  if (message.includes('user_script')) return new Error(withPlaces(message, script), { cause: error });
  return error;
}
