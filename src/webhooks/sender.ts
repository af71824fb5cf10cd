/**
 * Makes one delivery attempt over HTTP. Each attempt has its own connection, whose name look-up returns
 * exactly the addresses that were checked just before. So no connection can go to an address that was not
 * checked. Redirects are not followed.
 */
import { isIPv6, type LookupFunction } from 'node:net';
import { type buildConnector, Client } from 'undici';
import { attemptHeaders } from '../domain/webhook.js';
import { AnswerTooLargeError, boundedConnector } from '../platform/runtime/boundedRequest.js';
import { withTimeout } from '../platform/runtime/withTimeout.js';
import { allowedAddresses, DisallowedError, type Resolve } from './allowedAddresses.js';
import type { DueDelivery, SendResult } from './deliveries.store.js';

export interface Sending {
  /**
   * Outcome of the attempt. The promise never rejects. It resolves to undefined if the attempt was cancelled
   * before its outcome was known.
   */
  readonly outcome: Promise<SendResult | undefined>;
  giveUp(): void;
}

/** Maximum number of bytes that a receiver may send, including headers, interim responses and framing. */
const ANSWER_BYTES_MAX = 65_536;
/** Time after which the next address of a host is tried in parallel, in ms. */
const ADDRESS_TRY_MS = 1000;
const ERROR_CHARACTERS_MAX = 200;
/** Bytes of a response that are kept for operators, who see why a receiver refuses. */
const SHOWN_BYTES_MAX = 200;
/** Passed to undici, which would otherwise create an error with a stack trace for each closed connection. */
const ATTEMPT_ENDED = new Error('the attempt has ended');

export class Sender {
  constructor(
    private readonly options: {
      readonly brand: string;
      readonly resolve: Resolve;
      /** Timeout of the whole attempt in ms, from the name look-up to the last byte of the response. */
      readonly timeLimitMs: number;
      /** Decrypts a secret from the database. */
      readonly openSecret?: (sealed: string) => string;
      /** Returns the current time in ms since the epoch. */
      readonly now?: () => number;
    },
  ) {}

  /** Every error becomes the outcome of the attempt. */
  send(due: DueDelivery): Sending {
    const controller = new AbortController();
    const { signal } = controller;
    let isGivenUp = false;
    const timer = setTimeout(() => controller.abort(), this.options.timeLimitMs);
    const outcome = this.#attempt(due, signal)
      .then((made) => (isGivenUp && !made.isDelivered ? undefined : made))
      .finally(() => clearTimeout(timer));
    return {
      outcome,
      giveUp() {
        isGivenUp = true;
        controller.abort();
      },
    };
  }

  async #attempt(due: DueDelivery, signal: AbortSignal): Promise<SendResult> {
    const { brand, resolve, timeLimitMs, now = Date.now, openSecret = asIs } = this.options;
    const nowMs = now();
    let client: Client | undefined;
    let responseStatus: number | null = null;
    const start: Buffer[] = [];
    try {
      const addresses = await withTimeout(allowedAddresses(due.url, due.environment, resolve), signal);
      const url = new URL(due.url);
      client = new Client(url.origin, {
        pipelining: 0,
        // The connector gets its own abort signal, because the request's signal takes effect only after the
        // connection is established.
        connect: boundedConnector(
          {
            lookup: giving(addresses),
            timeout: timeLimitMs,
            signal,
            autoSelectFamily: true,
            autoSelectFamilyAttemptTimeout: ADDRESS_TRY_MS,
          } as buildConnector.BuildOptions,
          ANSWER_BYTES_MAX,
        ),
        headersTimeout: timeLimitMs,
        bodyTimeout: timeLimitMs,
      });
      const answer = await client.request({
        method: 'POST',
        path: url.pathname + url.search,
        headers: attemptHeaders(
          brand,
          { ...due, secrets: signingSecrets(due, nowMs, openSecret), attempt: due.attempts + 1 },
          Math.floor(nowMs / 1000),
        ),
        body: due.body,
        signal,
      });
      responseStatus = answer.statusCode;
      await readToEnd(answer.body, start);
      const isDelivered = responseStatus >= 200 && responseStatus < 300;
      const error = isDelivered ? null : `answered ${responseStatus}`;
      return { isDelivered, responseStatus, error, responseStart: shownStart(start) };
    } catch (error) {
      const reason = signal.aborted ? 'timed out' : reasonOf(error);
      return { isDelivered: false, responseStatus, error: reason, responseStart: shownStart(start) };
    } finally {
      client?.destroy(ATTEMPT_ENDED).catch(() => {});
    }
  }
}

/** Returns the signing secrets, newest first. A replaced secret also signs until its expiry. */
function signingSecrets(
  { secret, previous }: DueDelivery,
  nowMs: number,
  open: (sealed: string) => string,
): readonly [string, ...string[]] {
  const newest = open(secret);
  return previous === undefined || previous.until.getTime() <= nowMs
    ? [newest]
    : [newest, open(previous.secret)];
}

const asIs = (text: string): string => text;

/** Returns a look-up function that always gives the same addresses. */
function giving(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return (_name, options, done) => {
    // The callback must run asynchronously. Otherwise, if no address is reachable, TLS would report a missing
    // socket instead of the real error.
    if (options.all === true) process.nextTick(done, null, all);
    else process.nextTick(done, null, all[0]!.address, all[0]!.family);
  };
}

/**
 * Reads a response to its end, or until its connection is closed because the response is too long.
 *
 * @param start receives the first {@link SHOWN_BYTES_MAX} bytes
 */
async function readToEnd(body: AsyncIterable<Buffer>, start: Buffer[]): Promise<void> {
  let room = SHOWN_BYTES_MAX;
  try {
    for await (const chunk of body) {
      if (room <= 0) continue;
      start.push(Buffer.from(chunk.subarray(0, room)));
      room -= chunk.length;
    }
  } catch (error) {
    if (!(error instanceof AnswerTooLargeError)) throw error;
  }
}

/** Returns a response's first bytes as text. Control characters, which Postgres may refuse, become spaces. */
function shownStart(start: readonly Buffer[]): string | null {
  if (start.length === 0) return null;
  return Buffer.concat(start)
    .toString('utf8')
    .replace(/\p{Cc}/gu, ' ');
}

/** Error codes of name servers for a name without an address. */
const NO_ADDRESS = ['ENOTFOUND', 'ENODATA'];

function reasonOf(error: unknown): string {
  const { message, code, hostname } = error as Error & { code?: string; hostname?: string };
  if (hostname !== undefined && NO_ADDRESS.includes(code ?? ''))
    return `the host name ${hostname} has no address (${code})`.slice(0, ERROR_CHARACTERS_MAX);
  const isNamed = error instanceof DisallowedError || code === undefined || message.includes(code);
  const text = isNamed ? message : `${code} ${message}`;
  return text.slice(0, ERROR_CHARACTERS_MAX);
}
