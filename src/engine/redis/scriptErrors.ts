/** How a call of a script may fail, and what an error reply of Redis or the client library stands for. */
import { type Script, withPlaces } from './scriptLoader.js';

/** The cell is at another epoch than the caller believes, or Redis has lost it. Nothing was done. */
export class EpochError extends Error {}
/** The partner has left the cell, or is about to. Nothing was done. */
class AwayError extends EpochError {}
/** A block was to be loaded that does not begin where the queue ends. Nothing was done. */
export class GapError extends Error {
  readonly queueEnd: number;
  constructor(queueEnd: number) {
    super(`The queue ends at ${queueEnd}`);
    this.queueEnd = queueEnd;
  }
}

/** The connection took nothing: the call never left this process. */
export class NotSentError extends Error {}
/** The node does not hold the cell, or not now: another one does, or the cluster serves it nowhere at the moment. Nothing was done. */
export class NotHereError extends NotSentError {}
/** The store has a newer batch of the same front end. Nothing was done now; an earlier try may have been. */
export class StaleError extends Error {}
/** The caller's filters don't reach as far as request ids were released. Nothing was done. */
export class BehindError extends Error {}
/** A later owner of the cell has written to it. Nothing was done. */
export class OutrunError extends Error {}
/** Redis refused the script before it ran (out of memory, loading, read only, …). Nothing was done. */
export class RefusedError extends Error {}

/** The clocks of the caller and of Redis, or a cell's newest entry, differ too much. Nothing was done. */
export class ClockError extends RefusedError {
  /** By how much Redis, or the entry, is ahead of the caller; below 0: behind. */
  readonly skewMs: number;
  constructor(skewMs: number) {
    super(`The clock of Redis, or the newest entry, is ${skewMs} ms ahead of ours`);
    this.skewMs = skewMs;
  }
}

/** The cell lacks an entry that the caller has answered: an older copy has taken its place, and is not recognised yet. Nothing was done. */
export class LacksError extends RefusedError {}

/** Error replies that Redis gives before it runs anything of a script. */
const REFUSED = /^(OOM|LOADING|READONLY|MISCONF|MASTERDOWN|BUSY|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS)/;

/**
 * What a server of a cluster says of a key that is not its own. A script reads before it writes, so that the last one, too, comes
 * before anything was done. A redirection is never followed: the next try goes where the map of the cells says.
 */
const NOT_HERE = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN) |access a non local key/;

/** What the client library says of a call that it did not write. */
const NOT_SENT = /^Stream isn't writeable/;

/** Of the client library and of sockets: what says that the server does not answer. */
const AWAY =
  /^(Stream isn't writeable|Connection is closed|Command timed out)|max retries per request|ECONN|ETIMEDOUT|EPIPE/;

/** Redis does not answer now, or takes nothing, whatever is asked. */
export const isRedisAway = (error: unknown): boolean =>
  error instanceof NotSentError ||
  error instanceof RefusedError ||
  AWAY.test(messageOf(error)) ||
  NOT_HERE.test(messageOf(error));

/** The Redis user may not do what was asked. */
export const isForbidden = (error: unknown): boolean => messageOf(error).startsWith('NOPERM');

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The error above that an error reply, or the client library, stands for; any other error as it is, with the place in lua/. */
export function asScriptError(error: unknown, script: Script): unknown {
  const message = messageOf(error);
  if (message.startsWith('EPOCH')) return new EpochError(`The cell is at epoch ${message.slice(6)}`);
  if (message.startsWith('AWAY')) return new AwayError('The partner has left the cell');
  if (message.startsWith('FORMAT'))
    return new RefusedError(
      `The cell may hold data of format ${message.slice(7)}, which this version does not read`,
    );
  if (message.startsWith('LACKS')) return new LacksError(message);
  if (message.startsWith('CLOCK')) return new ClockError(Number(message.slice(6)));
  if (message.startsWith('STALE')) return new StaleError('A newer batch of this front end is known');
  if (message.startsWith('BEHIND'))
    return new BehindError('Request ids were released that the filters of this front end lack');
  if (message.startsWith('FENCED')) return new OutrunError('A later owner of the cell has written to it');
  if (NOT_HERE.test(message)) return new NotHereError(message, { cause: error });
  if (NOT_SENT.test(message)) return new NotSentError(message, { cause: error });
  if (message.startsWith('GAP')) return new GapError(Number(message.slice(4)));
  if (REFUSED.test(message)) return new RefusedError(message, { cause: error });
  if (message.includes('user_script')) return new Error(withPlaces(message, script), { cause: error });
  return error;
}
