/** Writes all HTTP responses: status line, headers and body. */
import { type ApiError, docUrlOf, ERRORS, type ErrorEntry, type Fault } from '../../domain/errors.js';
import { FAULTS_MAX } from '../../domain/validation.js';
import { headerLines, JSON_TYPE, type Window, WindowedHeads, windowSecondsLeft } from './answerHead.js';
import type { Exchange, RawResponse } from './exchange.js';

/**
 * Value of `Retry-After`, in seconds, if no rate limit window determines the wait. Stores usually recover
 * within seconds.
 */
const RETRY_AFTER_SECONDS = 2;
/** Time after which a client that reads nothing of a long answer is disconnected, in ms. */
const STALLED_MS = 10_000;

export type { Window } from './answerHead.js';

export const REPLAYED = 'Idempotent-Replayed: true';

class StalledError extends Error {}

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

/** Renders the body of an error (docs/contract.md §14). */
export const errorText = (
  entry: ErrorEntry,
  about: {
    readonly message?: string | undefined;
    readonly retryAfter?: number | undefined;
    readonly details?: readonly Fault[] | undefined;
  },
): string =>
  JSON.stringify({
    status: 'error',
    errorCode: entry.code,
    message: about.message ?? entry.message,
    docUrl: docUrlOf(entry),
    retryAfter: about.retryAfter,
    ...(about.details === undefined || about.details.length === 0
      ? {}
      : { details: about.details.slice(0, FAULTS_MAX) }),
  });

export class Replies {
  #closing = false;
  readonly #windowedHeads = new WindowedHeads();
  /** The answer that is being written, until {@link json} returns. */
  readonly #next = {} as {
    raw: RawResponse;
    status: number;
    lines: string | Uint8Array;
    body: string | Uint8Array | undefined;
    closes: boolean;
  };

  constructor(private readonly observe: ReplyObserver) {}

  /** From this call on, each answer closes its connection. */
  closeConnections(): void {
    this.#closing = true;
  }

  /**
   * @param headers header lines made by the service, each ended by CRLF except the last; never text of a
   * client
   */
  json(
    exchange: Exchange,
    status: number,
    body: string | Uint8Array,
    window?: Window,
    headers = '',
    errorCode?: string,
    contentType = JSON_TYPE,
  ): void {
    if (exchange.ended) return;
    const { incoming } = exchange;
    if (incoming !== undefined && !incoming.isReceived) {
      // The answer waits until the request has arrived completely. If the answer were sent earlier and the
      // connection then closed, the client could lose the answer.
      incoming.passOver(() => this.json(exchange, status, body, window, headers, errorCode, contentType));
      return;
    }
    exchange.end();
    this.observe(exchange, status, errorCode);
    const { raw } = exchange;
    const isHead = exchange.head.method === 'head';
    const closes = this.#closing || exchange.closesConnection;
    const next = this.#next;
    next.raw = raw;
    next.status = status;
    next.body = isHead || status === 204 ? undefined : body;
    next.closes = closes;
    if (
      window !== undefined &&
      headers === '' &&
      !isHead &&
      !exchange.isPrivate &&
      contentType === JSON_TYPE
    ) {
      next.lines = this.#windowedHeads.lines(exchange, window);
    } else {
      const length = isHead && !closes ? `\r\nContent-Length: ${Buffer.byteLength(body)}` : '';
      next.lines = headerLines(exchange, contentType, window, headers, length);
    }
    raw.cork(this.#write);
  }

  /**
   * Writes {@link #next}. A single function serves all answers, because a closure for each spin would be
   * garbage to collect.
   */
  readonly #write = (): void => {
    const { raw, status, lines, body, closes } = this.#next;
    // The server writes the status 200 OK by default.
    if (status !== 200) raw.writeStatus(STATUS_TEXT[status] ?? String(status));
    raw.writeHeader('Content-Type', lines);
    if (body !== undefined) {
      if (closes) raw.end(body, true);
      else if (!raw.tryEnd(body, 0)[1]) sendRest(raw, body);
      return;
    }
    // If endWithoutBody gets a length other than 0, uWebSockets.js waits for that many bytes, and the
    // connection accepts no further request.
    if (closes) raw.endWithoutBody(0, true);
    else raw.endWithoutBody();
  };

  /**
   * Sends an error of the error catalog (the list of error codes). Sends `Retry-After` too if waiting helps.
   */
  error(
    exchange: Exchange,
    entry: ErrorEntry,
    window?: Window,
    options: {
      details?: readonly Fault[] | undefined;
      retryAfterSeconds?: number | undefined;
      status?: number;
      /** Message instead of the default message of the catalog entry. */
      message?: string;
      headers?: string;
    } = {},
  ): void {
    const status = options.status ?? entry.status;
    let retryAfter = options.retryAfterSeconds;
    if (status === 429 && window !== undefined) retryAfter ??= windowSecondsLeft(window.nowMs);
    else if (status === 503 || entry === ERRORS.spinInProgress) retryAfter ??= RETRY_AFTER_SECONDS;
    const body = errorText(entry, { ...options, ...(status === 429 ? { retryAfter } : {}) });
    const retry = retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`];
    const headers = [...retry, ...(options.headers === undefined ? [] : [options.headers])].join('\r\n');
    this.json(exchange, status, body, window, headers, entry.code);
  }

  /**
   * Sends a body of any length in chunks. Each chunk is sent after the client has read the previous one, so
   * the stream needs little memory.
   *
   * @param pieces non-empty chunks; if the first chunk rejects, nothing has been sent; if a later chunk
   * rejects, the connection is cut
   * @throws errors of `pieces`
   */
  async stream(
    exchange: Exchange,
    pieces: AsyncIterator<string>,
    { contentType, headers = '' }: { readonly contentType: string; readonly headers?: string | undefined },
    window?: Window,
  ): Promise<void> {
    const { raw } = exchange;
    let piece = await pieces.next();
    let isBegun = false;
    try {
      if (exchange.head.method === 'head') {
        this.#headOfStream(exchange, headerLines(exchange, contentType, window, headers, ''));
        return;
      }
      while (piece.done !== true && !exchange.ended) {
        const text = piece.value;
        let isTaken = true;
        raw.cork(() => {
          if (!isBegun)
            raw.writeHeader('Content-Type', headerLines(exchange, contentType, window, headers, ''));
          isBegun = true;
          isTaken = raw.write(text);
        });
        if (!isTaken) await taken(exchange);
        piece = await pieces.next();
      }
      if (exchange.ended) return;
      exchange.end();
      this.observe(exchange, 200, undefined);
      raw.cork(() => raw.end('', this.#closing));
    } catch (error) {
      // The connection is cut, so that the client does not take the incomplete body for the whole body.
      if (!exchange.ended) {
        exchange.end();
        this.observe(exchange, 200, undefined);
        raw.close();
      }
      if (!(error instanceof StalledError)) throw error;
    } finally {
      await pieces.return?.();
    }
  }

  /** Answers HEAD without Content-Length, because the length of a stream is not known beforehand. */
  #headOfStream(exchange: Exchange, lines: string): void {
    if (exchange.ended) return;
    exchange.end();
    this.observe(exchange, 200, undefined);
    const { raw } = exchange;
    raw.cork(() => {
      raw.writeHeader('Content-Type', lines);
      if (this.#closing) raw.endWithoutBody(0, true);
      else raw.endWithoutBody();
    });
  }

  failure(exchange: Exchange, error: ApiError, window?: Window): void {
    this.error(exchange, error.entry, window, {
      details: error.details,
      retryAfterSeconds: error.retryAfterSeconds,
    });
  }
}

/**
 * Sends the remaining body as the client reads it. Until then the connection accepts no further request. It
 * is closed if the client reads nothing for 10 s.
 */
function sendRest(raw: RawResponse, body: string | Uint8Array): void {
  const bytes = Buffer.from(body as string);
  raw.onWritable((written) => raw.tryEnd(bytes.subarray(written), bytes.length)[0]);
}

/**
 * Resolves when the client has read the written data or has disconnected.
 *
 * @throws Error if the client takes too long
 */
async function taken(exchange: Exchange): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve, reject) => {
    exchange.onAbort = resolve;
    exchange.raw.onWritable(() => {
      resolve();
      return true;
    });
    timer = setTimeout(() => reject(new StalledError('The client does not read the response')), STALLED_MS);
  }).finally(() => clearTimeout(timer));
}
