/** Typed calls of the partner API, generated from its OpenAPI document, and the transport that sends them. */
import createClient, { type Client, type ClientOptions } from 'openapi-fetch';
import { NoAnswerError, SpindleError } from './errors.js';
import type { components, paths } from './partner.v1.js';
import type { paths as PlayPaths, components as playComponents } from './play.v1.js';

/**
 * Typed calls of the partner API, such as `GET('/games')` or `POST('/spin', { body })`. Each call resolves
 * with `data` or `error`.
 */
export type PartnerApi = Client<paths>;
/** Named schemas of the partner API. */
export type Schemas = components['schemas'];
/**
 * Typed calls of blackjack rounds, such as `POST('/deal', { body })`. Each call resolves with `data` or
 * `error`.
 */
export type PlayApi = Client<PlayPaths>;
/** Named schemas of the play API. */
export type PlaySchemas = playComponents['schemas'];

const BASE = '/api/partner/v1';
const PLAY_BASE = '/api/play/blackjack';
const TIMEOUT_MS = 10_000;
/** Longest time that a timer can wait, in ms: 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Function that sends a request: `fetch`, or a function with the same behavior. */
export type Send = (request: Request, options: { signal: AbortSignal }) => Promise<Response>;

export interface ApiOptions {
  /** Address of the service: `https://…`, with or without `/api/partner/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Time in ms after which an attempt counts as unanswered. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Replacements for the global `fetch` and for the class `Request` that is passed to it. */
  readonly fetch?: Send | undefined;
  readonly Request?: ClientOptions['Request'] | undefined;
}

/**
 * Creates the typed calls of the partner API.
 *
 * @throws TypeError if the address or the key is missing, if the key contains invalid characters, or if the
 * timeout is not a time
 * @throws NoAnswerError from each call that gets no answer from the service in time
 */
export const partnerApi = (options: ApiOptions): PartnerApi => createClient<paths>(settingsOf(options, BASE));

/** Creates the typed calls of blackjack rounds. Throws the same errors as {@link partnerApi}. */
export const playApi = (options: ApiOptions): PlayApi =>
  createClient<PlayPaths>(settingsOf(options, PLAY_BASE));

/** Creates the typed calls of an API for one attempt, which ends after `leftMs` ms or its own timeout. */
export type ApiWithin<Api> = (leftMs: number) => Api;

/** @param create {@link partnerApi} or {@link playApi} */
export const apiWithin =
  <Api>(create: (options: ApiOptions) => Api, options: ApiOptions): ApiWithin<Api> =>
  (leftMs) =>
    create({ ...options, timeoutMs: Math.min(leftMs, options.timeoutMs ?? TIMEOUT_MS) });

/**
 * Returns a time in ms that a caller has set.
 *
 * @throws TypeError if it is not a number from 0 to 2,147,483,647
 */
export function timeOf(name: string, ms: number): number {
  if (!(ms >= 0 && ms <= LONGEST_TIMER_MS)) {
    throw new TypeError(`${name} must be from 0 to ${LONGEST_TIMER_MS} ms`);
  }
  return ms;
}

function settingsOf(
  { baseUrl, apiKey, timeoutMs = TIMEOUT_MS, fetch: send, Request }: ApiOptions,
  base: string,
): ClientOptions {
  const address = addressOf(baseUrl);
  // The key usually comes from the environment or a file. A missing key is reported here instead of later as
  // a 401.
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey must be a key of a partner, without spaces or line breaks');
  }
  return {
    ...transportOf(address, timeOf('timeoutMs', timeoutMs), send),
    ...(Request === undefined ? {} : { Request }),
    baseUrl: address + base,
    headers: { 'X-API-Key': apiKey },
  };
}

/**
 * Returns the address of the service without an API path.
 *
 * @throws TypeError if the text is not an http or https address
 */
function addressOf(baseUrl: string): string {
  if (typeof baseUrl !== 'string' || !/^https?:\/\/[^/]/.test(baseUrl)) {
    throw new TypeError('baseUrl must be an http:// or https:// address');
  }
  return baseUrl.replace(/\/+$/, '').replace(/\/api\/(partner\/v1|play\/blackjack)$/, '');
}

/**
 * Creates the transport. It applies the timeout, and throws an error for every answer that does not come from
 * the service.
 */
export function transportOf(
  address: string,
  timeoutMs: number,
  send: Send = (request, options) => fetch(request, { ...options, redirect: 'error' }),
): Pick<ClientOptions, 'fetch'> {
  return {
    async fetch(request) {
      const timeout = new AbortController();
      const timer = setTimeout(() => timeout.abort(), timeoutMs);
      const signal = request.signal ? AbortSignal.any([request.signal, timeout.signal]) : timeout.signal;
      let response: Response;
      let text: string;
      try {
        response = await send(request, { signal });
        text = await response.text();
      } catch (error) {
        // If the caller aborted the request by its own signal, the reason of that signal is thrown.
        if (request.signal?.aborted) throw request.signal.reason;
        const reason = timeout.signal.aborted
          ? `no response within ${timeoutMs / 1000} s`
          : messageOf(error as Error);
        throw new NoAnswerError(`The service at ${address} is not responding: ${reason}`, { cause: error });
      } finally {
        clearTimeout(timer);
      }
      const strange = strangeness(response, text);
      if (strange !== undefined) throw new NoAnswerError(`${address} answers with ${strange}`);
      return new Response(response.status === 204 ? null : text, response);
    },
  };
}

/**
 * Returns the most specific error message. `fetch` only says that it failed; the cause of its error says why.
 */
function messageOf(error: Error & { code?: string }): string {
  const cause = error.cause as (Error & { code?: string }) | undefined;
  return cause?.message || cause?.code || error.message || error.code || error.name;
}

/**
 * Returns why an answer does not come from the service, because another program listens at the address or a
 * proxy answered. Returns undefined if it comes from the service.
 */
function strangeness({ status, headers }: Response, text: string): string | undefined {
  if (status === 204) return undefined;
  const isSuccess = status >= 200 && status < 300;
  if (isSuccess && headers.get('Content-Type')?.startsWith('text/csv')) return undefined;
  let body: { errorCode?: unknown } | null;
  try {
    body = JSON.parse(text);
  } catch {
    return `HTTP ${status} without a JSON body`;
  }
  return isSuccess || typeof body?.errorCode === 'string'
    ? undefined
    : `HTTP ${status} with a body that is not from this service`;
}

/** Result of a typed call: `data` or `error`, and the HTTP response. */
export interface Answered<Body> {
  readonly data?: Body;
  readonly error?: unknown;
  readonly response: Response;
}

/**
 * The two ways in which methods call the API. Reads are repeated after transient errors. Writes are repeated
 * only if the rate limit refused them.
 */
export interface Calls {
  read<Body>(call: (api: PartnerApi) => Promise<Answered<Body>>): Promise<Body>;
  write<Body>(call: (api: PartnerApi) => Promise<Answered<Body>>): Promise<Body>;
}

/**
 * Returns the body of a successful call: `await bodyOf(api.GET('/games'))`.
 *
 * @throws SpindleError if the service answered with an error
 * @throws NoAnswerError if the service did not answer
 */
export async function bodyOf<Body>(call: Promise<Answered<Body>>): Promise<Body> {
  const { data, error, response } = await call;
  if (response.ok) return data as Body;
  const { errorCode: code, message, details, retryAfter } = error as Schemas['ErrorResponse'];
  const wait = Number(response.headers.get('Retry-After') ?? retryAfter);
  throw new SpindleError({
    status: response.status,
    code,
    message,
    details,
    httpRequestId: response.headers.get('X-Request-Id') ?? undefined,
    retryAfterSeconds: Number.isFinite(wait) ? wait : undefined,
  });
}
