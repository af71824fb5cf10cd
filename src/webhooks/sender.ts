/**
 * One attempt of a delivery over HTTP. The address that is judged is the address that is connected to: each attempt has a
 * connection of its own, whose look-up gives what was judged a moment before. Redirects are not followed.
 */
import { isIPv6, type LookupFunction } from 'node:net';
import { type buildConnector, Client } from 'undici';
import { attemptHeaders } from '../domain/webhook.js';
import { AnswerTooLargeError, boundedConnector } from '../platform/runtime/boundedRequest.js';
import { withTimeout } from '../platform/runtime/withTimeout.js';
import { allowedAddresses, DisallowedError, type Resolve } from './allowedAddresses.js';
import type { DueDelivery } from './deliveries.store.js';

export interface SendResult {
  readonly isDelivered: boolean;
  /** Null: no answer came. */
  readonly responseStatus: number | null;
  /** Why it failed, in a line. */
  readonly error: string | null;
}

/** An attempt under way. */
export interface Sending {
  /** Never rejects; undefined where it was given up before its outcome was known. */
  readonly outcome: Promise<SendResult | undefined>;
  giveUp(): void;
}

export interface SenderOptions {
  readonly brand: string;
  readonly resolve: Resolve;
  /** For the whole attempt, from the look-up to the last byte of the answer. */
  readonly timeLimitMs: number;
  /** Decrypts a secret that the database holds. */
  readonly openSecret?: (sealed: string) => string;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** That a receiver may send in all: its head, interim answers and framing count like the body. */
const ANSWER_BYTES_MAX = 65_536;
/** Of several addresses the next one is tried, too, when one has not answered by then. */
const ADDRESS_TRY_MS = 1000;
const ERROR_CHARACTERS_MAX = 200;

export class Sender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Begins an attempt; whatever goes wrong is its outcome. */
  send(due: DueDelivery): Sending {
    const controller = new AbortController();
    const { signal } = controller;
    let isGivenUp = false;
    const timer = setTimeout(() => controller.abort(), this.#options.timeLimitMs);
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
    const { brand, resolve, timeLimitMs, now = Date.now, openSecret = asIs } = this.#options;
    const nowMs = now();
    let client: Client | undefined;
    let responseStatus: number | null = null;
    try {
      const addresses = await withTimeout(allowedAddresses(due.url, due.environment, resolve), signal);
      const url = new URL(due.url);
      client = new Client(url.origin, {
        pipelining: 0,
        // The request's own signal holds only once there is a connection, and destroys none that is still being made.
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
      await readToEnd(answer.body);
      const isDelivered = responseStatus >= 200 && responseStatus < 300;
      return { isDelivered, responseStatus, error: isDelivered ? null : `answered ${responseStatus}` };
    } catch (error) {
      return { isDelivered: false, responseStatus, error: signal.aborted ? 'timed out' : reasonOf(error) };
    } finally {
      client?.destroy().catch(() => {});
    }
  }
}

/** The secrets that sign, the newest first: one that was replaced signs, too, until its time. */
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

/** A look-up that knows one name. */
function giving(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return (_name, options, done) => {
    // Not at once: where no address can be reached TLS would find its socket gone, and say that instead.
    if (options.all === true) process.nextTick(done, null, all);
    else process.nextTick(done, null, all[0]!.address, all[0]!.family);
  };
}

/** Reads an answer to its end, or until its connection is cut because it is longer than anybody needs. */
async function readToEnd(body: AsyncIterable<Buffer>): Promise<void> {
  try {
    for await (const _ of body);
  } catch (error) {
    if (!(error instanceof AnswerTooLargeError)) throw error;
  }
}

/** What name servers answer where there is none. */
const NO_ADDRESS = ['ENOTFOUND', 'ENODATA'];

function reasonOf(error: unknown): string {
  const { message, code, hostname } = error as Error & { code?: string; hostname?: string };
  if (hostname !== undefined && NO_ADDRESS.includes(code ?? ''))
    return `the name ${hostname} has no address (${code})`.slice(0, ERROR_CHARACTERS_MAX);
  const isNamed = error instanceof DisallowedError || code === undefined || message.includes(code);
  const text = isNamed ? message : `${code} ${message}`;
  return text.slice(0, ERROR_CHARACTERS_MAX);
}
