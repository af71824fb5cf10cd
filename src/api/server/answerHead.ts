/**
 * Builds the header lines of answers. All values are made by the service itself. The header lines of spins
 * are cached as bytes, because little in them changes.
 */
import type { Exchange } from './exchange.js';

/** A fixed rate limit window that a request counts against (docs/contract.md §4). */
export interface Window {
  /** Name of the rate limit policy in the IETF fields: `spin`, `api` or `auth`. */
  readonly policy: string;
  readonly limit: number;
  readonly remaining: number;
  /** Time of the store's clock, in ms since the epoch. */
  readonly nowMs: number;
}

export const JSON_TYPE = 'application/json';
export const WINDOW_SECONDS = 60;

/** Returns the seconds from `nowMs` to the end of the rate limit window that contains it, at least 1. */
export const windowSecondsLeft = (nowMs: number): number =>
  WINDOW_SECONDS - (Math.floor(nowMs / 1000) % WINDOW_SECONDS);

/**
 * Returns the value of Content-Type followed by the lines of all other headers, so that one call writes all
 * headers.
 *
 * @param headers further lines, each ended by CRLF except the last
 * @param length Content-Length line with a CRLF before it, or an empty string
 */
export function headerLines(
  { id, version, isPrivate }: Exchange,
  contentType: string,
  window: Window | undefined,
  headers: string,
  length: string,
): string {
  let lines = `${contentType}${REQUEST_ID}${id}`;
  if (window !== undefined) lines += windowLines(window);
  if (headers !== '') lines += `\r\n${headers}`;
  if (isPrivate) lines += PRIVATE;
  if (version !== undefined) lines += version.headers;
  return lines + length;
}

/**
 * Headers of private answers: no cache may store them, and no browser may interpret them as another type than
 * JSON or CSV.
 */
const PRIVATE = '\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff';
const REQUEST_ID = '\r\nX-Request-Id: ';
const REMAINING = '\r\nX-RateLimit-Remaining: ';

/**
 * Returns the three X-RateLimit headers (docs/contract.md §4) and the fields of the IETF draft "RateLimit
 * header fields".
 */
function windowLines({ policy, limit, remaining, nowMs }: Window): string {
  const left = windowSecondsLeft(nowMs);
  return (
    `\r\nX-RateLimit-Limit: ${limit}${REMAINING}${remaining}\r\nX-RateLimit-Reset: ${Math.floor(nowMs / 1000) + left}` +
    `\r\nRateLimit-Policy: "${policy}";q=${limit};w=${WINDOW_SECONDS}${remainingOf(policy)}${remaining};t=${left}`
  );
}

const remainingOf = (policy: string): string => `\r\nRateLimit: "${policy}";r=`;

/**
 * Caches the header lines of one limit as bytes. Within a second, answers differ only in the request's id and
 * the number of remaining requests. Both are overwritten in the bytes of the previous answer. Header lines as
 * strings cost 6 % of a spin's CPU time with 256 connections (docs/adr/0002-http-in-bytes.md).
 */
class WindowedHead {
  #bytes: Buffer = Buffer.alloc(0);
  #second = -1;
  #limit = -1;
  #policy = '';
  #versionHeaders: string | undefined;
  #idLength = -1;
  /**
   * Range of remaining-request counts that have as many digits as the count in the cached bytes. The start is
   * inclusive, the end is exclusive.
   */
  #remainingFrom = 0;
  #remainingTo = 0;
  #remainingEnds: readonly [number, number] = [0, 0];

  lines(exchange: Exchange, window: Window): Buffer {
    const { id, version } = exchange;
    const { remaining } = window;
    const isLike =
      remaining >= this.#remainingFrom &&
      remaining < this.#remainingTo &&
      Math.floor(window.nowMs / 1000) === this.#second &&
      window.limit === this.#limit &&
      window.policy === this.#policy &&
      version?.headers === this.#versionHeaders &&
      id.length === this.#idLength;
    if (!isLike) {
      this.#lay(exchange, window);
      return this.#bytes;
    }
    const bytes = this.#bytes;
    for (let i = 0; i < id.length; i++) bytes[ID_AT + i] = id.charCodeAt(i);
    for (const end of this.#remainingEnds) {
      let left = remaining;
      let at = end;
      do {
        const tenth = Math.floor(left / 10);
        bytes[--at] = ZERO + left - tenth * 10;
        left = tenth;
      } while (left > 0);
    }
    return bytes;
  }

  #lay(exchange: Exchange, window: Window): void {
    const text = headerLines(exchange, JSON_TYPE, window, '', '');
    const { policy, limit, remaining, nowMs } = window;
    this.#bytes = Buffer.from(text, 'latin1');
    this.#second = Math.floor(nowMs / 1000);
    this.#limit = limit;
    this.#policy = policy;
    this.#versionHeaders = exchange.version?.headers;
    this.#idLength = exchange.id.length;
    const digits = String(remaining).length;
    this.#remainingFrom = digits === 1 ? 0 : 10 ** (digits - 1);
    this.#remainingTo = 10 ** digits;
    const endOf = (name: string): number => text.indexOf(name) + name.length + digits;
    this.#remainingEnds = [endOf(REMAINING), endOf(remainingOf(policy))];
  }
}

const ID_AT = JSON_TYPE.length + REQUEST_ID.length;
const ZERO = 0x30;

/** Maximum number of rate limits with cached header lines. Each partner can have its own limits. */
const LIMITS_MAX = 256;

export class WindowedHeads {
  readonly #byLimit = new Map<number, WindowedHead>();

  /**
   * Returns {@link headerLines} of a JSON answer with a window and no further headers.
   *
   * @returns bytes that are valid until the next call
   */
  lines(exchange: Exchange, window: Window): Buffer {
    let head = this.#byLimit.get(window.limit);
    if (head === undefined) {
      if (this.#byLimit.size >= LIMITS_MAX) this.#byLimit.clear();
      head = new WindowedHead();
      this.#byLimit.set(window.limit, head);
    }
    return head.lines(exchange, window);
  }
}
