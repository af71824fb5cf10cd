/** The only writer of responses: status line, headers, body. */
import { type ApiError, docUrlOf, ERRORS, type ErrorEntry, type Fault } from '../domain/errors.js';
import { FAULTS_MAX } from '../domain/validation.js';
import type { Exchange, RawResponse } from './exchange.js';

/** A fixed window that a request counts against (docs/contract.md §4). */
export interface Window {
  /** `spin`, `api` or `auth`: the name of the policy in the IETF fields. */
  readonly policy: string;
  readonly limit: number;
  readonly remaining: number;
  /** By the store's clock, milliseconds since the epoch. */
  readonly nowMs: number;
}

export const WINDOW_SECONDS = 60;
/** What `Retry-After` says where no window tells: stores come back within seconds. */
export const RETRY_AFTER_SECONDS = 2;
/** A client that takes nothing of a long answer for so long is cut off. */
const STALLED_MS = 10_000;

class StalledError extends Error {}

/** Told of every answer that goes out. */
export type ReplyObserver = (exchange: Exchange, status: number, errorCode: string | undefined) => void;

const STATUS_TEXT: Readonly<Record<number, string>> = {
  200: '200 OK',
  201: '201 Created',
  202: '202 Accepted',
  204: '204 No Content',
  302: '302 Found',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  409: '409 Conflict',
  410: '410 Gone',
  413: '413 Content Too Large',
  426: '426 Upgrade Required',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
};

/** Seconds from `nowMs` to the end of its window, at least 1. */
const secondsLeft = (nowMs: number): number => WINDOW_SECONDS - (Math.floor(nowMs / 1000) % WINDOW_SECONDS);

export class Replies {
  readonly #observe: ReplyObserver;
  #closing = false;

  constructor(observe: ReplyObserver) {
    this.#observe = observe;
  }

  /** From now on each answer closes its connection. */
  closeConnections(): void {
    this.#closing = true;
  }

  /**
   * @param body text, or its bytes
   * @param headers header lines of the service's own making, each ended by CRLF except the last; never a caller's text
   */
  json(
    exchange: Exchange,
    status: number,
    body: string | Uint8Array,
    window?: Window,
    headers = '',
    errorCode?: string,
    contentType = 'application/json',
  ): void {
    if (exchange.settled) return;
    exchange.settle();
    this.#observe(exchange, status, errorCode);
    const { raw, rewrite } = exchange;
    const sent =
      rewrite === undefined || contentType !== 'application/json'
        ? body
        : rewrite(Buffer.from(body as string).toString());
    const isHead = exchange.head.method === 'head';
    const closes = this.#closing || exchange.closesConnection;
    const hasBody = !isHead && status !== 204;
    const length = isHead && !closes ? `\r\nContent-Length: ${Buffer.byteLength(sent)}` : '';
    const lines = headerLines(exchange, contentType, window, headers, length);
    raw.cork(() => {
      // 200 OK is what the server writes by itself.
      if (status !== 200) raw.writeStatus(STATUS_TEXT[status] ?? String(status));
      raw.writeHeader('Content-Type', lines);
      if (hasBody) {
        if (closes) raw.end(sent, true);
        else if (!raw.tryEnd(sent, 0)[1]) sendRest(raw, sent);
        return;
      }
      // A length other than 0 given to endWithoutBody is waited for, and the connection takes no further request.
      if (closes) raw.endWithoutBody(0, true);
      else raw.endWithoutBody();
    });
  }

  /** An error of the catalogue. `Retry-After` is sent where a wait helps. */
  error(
    exchange: Exchange,
    entry: ErrorEntry,
    window?: Window,
    options: {
      details?: readonly Fault[] | undefined;
      retryAfterSeconds?: number | undefined;
      status?: number;
      /** In place of the entry's own. */
      message?: string;
    } = {},
  ): void {
    const status = options.status ?? entry.status;
    let retryAfter = options.retryAfterSeconds;
    if (status === 429 && window !== undefined) retryAfter = secondsLeft(window.nowMs);
    else if (status === 503 || entry === ERRORS.spinInProgress) retryAfter ??= RETRY_AFTER_SECONDS;
    const body = JSON.stringify({
      status: 'error',
      errorCode: entry.code,
      message: options.message ?? entry.message,
      docUrl: docUrlOf(entry),
      ...(status === 429 ? { retryAfter } : {}),
      ...(options.details === undefined || options.details.length === 0
        ? {}
        : { details: options.details.slice(0, FAULTS_MAX) }),
    });
    const headers = retryAfter === undefined ? '' : `Retry-After: ${retryAfter}`;
    this.json(exchange, status, body, window, headers, entry.code);
  }

  /**
   * Sends a body of any length piece by piece, each once the one before was taken: so it needs little memory.
   * @param pieces none of them empty; where the first one rejects nothing was sent, later the connection is cut
   * @throws what `pieces` throws
   */
  async stream(
    exchange: Exchange,
    pieces: AsyncIterator<string>,
    contentType: string,
    window?: Window,
  ): Promise<void> {
    const { raw } = exchange;
    let piece = await pieces.next();
    let isBegun = false;
    try {
      while (piece.done !== true && !exchange.settled) {
        const text = piece.value;
        let isTaken = true;
        raw.cork(() => {
          if (!isBegun) raw.writeHeader('Content-Type', headerLines(exchange, contentType, window, '', ''));
          isBegun = true;
          isTaken = raw.write(text);
        });
        if (!isTaken) await taken(exchange);
        piece = await pieces.next();
      }
      if (exchange.settled) return;
      exchange.settle();
      this.#observe(exchange, 200, undefined);
      raw.cork(() => raw.end('', this.#closing));
    } catch (error) {
      // The client must not take what it has for the whole.
      if (!exchange.settled) {
        exchange.settle();
        this.#observe(exchange, 200, undefined);
        raw.close();
      }
      if (!(error instanceof StalledError)) throw error;
    } finally {
      await pieces.return?.();
    }
  }

  failure(exchange: Exchange, error: ApiError, window?: Window): void {
    this.error(exchange, error.entry, window, {
      details: error.details,
      retryAfterSeconds: error.retryAfterSeconds,
    });
  }
}

/** The value of Content-Type with the lines of all other headers, which are all our own: one call in place of one for each. */
function headerLines(
  { id, version }: Exchange,
  contentType: string,
  window: Window | undefined,
  headers: string,
  length: string,
): string {
  let lines = `${contentType}\r\nX-Request-Id: ${id}`;
  if (window !== undefined) lines += windowLines(window);
  if (headers !== '') lines += `\r\n${headers}`;
  if (version !== undefined) lines += version.headers;
  return lines + length;
}

/**
 * Sends the rest of a body as its reader takes it. Until then the connection takes no further request, and it is closed where
 * nothing is read for 10 s.
 */
function sendRest(raw: RawResponse, body: string | Uint8Array): void {
  const bytes = Buffer.from(body as string);
  raw.onWritable((written) => raw.tryEnd(bytes.subarray(written), bytes.length)[0]);
}

/** Resolves once the client has taken what was written, or has gone. @throws Error where it takes too long */
async function taken(exchange: Exchange): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve, reject) => {
    exchange.onAbort = resolve;
    exchange.raw.onWritable(() => {
      resolve();
      return true;
    });
    timer = setTimeout(() => reject(new StalledError('The client takes nothing')), STALLED_MS);
  }).finally(() => clearTimeout(timer));
}

/** What the lines of a window have in common within a second: all but the number of requests left. */
const common = { policy: '', limit: -1, second: -1, limitLine: '', resetLines: '', end: '' };

/** The three X-RateLimit headers (docs/contract.md §4), and the fields of the IETF draft "RateLimit header fields". */
function windowLines({ policy, limit, remaining, nowMs }: Window): string {
  const second = Math.floor(nowMs / 1000);
  if (second !== common.second || limit !== common.limit || policy !== common.policy) {
    const left = secondsLeft(nowMs);
    Object.assign(common, { policy, limit, second });
    common.limitLine = `\r\nX-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: `;
    common.resetLines =
      `\r\nX-RateLimit-Reset: ${second + left}` +
      `\r\nRateLimit-Policy: "${policy}";q=${limit};w=${WINDOW_SECONDS}\r\nRateLimit: "${policy}";r=`;
    common.end = `;t=${left}`;
  }
  return common.limitLine + remaining + common.resetLines + remaining + common.end;
}
