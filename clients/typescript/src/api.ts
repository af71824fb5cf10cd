/** The typed calls of the partner API as its OpenAPI document has them, and how a request is sent. */
import createClient, { type Client, type ClientOptions } from 'openapi-fetch';
import { NoAnswerError, SpindleError } from './errors.js';
import type { components, paths } from './partner.v1.js';
import type { paths as PlayPaths, components as playComponents } from './play.v1.js';

/** `GET('/games')`, `POST('/spin', { body })`, …: each resolves with `data` or `error`. */
export type PartnerApi = Client<paths>;
/** The named schemas of the partner API. */
export type Schemas = components['schemas'];
/** `POST('/deal', { body })`, …: the typed calls of blackjack rounds. */
export type PlayApi = Client<PlayPaths>;
/** The named schemas of the play API. */
export type PlaySchemas = playComponents['schemas'];

const BASE = '/api/partner/v1';
const PLAY_BASE = '/api/play/blackjack';
const TIMEOUT_MS = 10_000;

/** What sends a request: `fetch`, or a function like it. */
export type Send = (request: Request, options: { signal: AbortSignal }) => Promise<Response>;

export interface ApiOptions {
  /** Of the service: `https://…`, with or without `/api/partner/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Milliseconds until a request counts as unanswered. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** In place of the global `fetch`, and of the class of what it is given. */
  readonly fetch?: Send | undefined;
  readonly Request?: ClientOptions['Request'] | undefined;
}

/**
 * @throws TypeError where the address or the key is missing, or no key can be what it is
 * @throws NoAnswerError from each call that gets no answer of a service in time
 */
export const partnerApi = (options: ApiOptions): PartnerApi => createClient<paths>(settingsOf(options, BASE));

/** Of blackjack rounds, likewise. */
export const playApi = (options: ApiOptions): PlayApi =>
  createClient<PlayPaths>(settingsOf(options, PLAY_BASE));

function settingsOf(
  { baseUrl, apiKey, timeoutMs, fetch: send, Request }: ApiOptions,
  base: string,
): ClientOptions {
  const address = addressOf(baseUrl);
  // A key comes from the environment or a file: what is missing there shows here, and not as a 401 later.
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey is missing, or has characters that no key has');
  }
  return {
    ...transportOf(address, timeoutMs, send),
    ...(Request === undefined ? {} : { Request }),
    baseUrl: address + base,
    headers: { 'X-API-Key': apiKey },
  };
}

/** The service's address, without a path of the API. @throws TypeError where it is no address of HTTP */
function addressOf(baseUrl: string): string {
  if (typeof baseUrl !== 'string' || !/^https?:\/\/[^/]/.test(baseUrl)) {
    throw new TypeError('baseUrl is missing, or is not an http or https address');
  }
  return baseUrl.replace(/\/+$/, '').replace(/\/api\/(partner\/v1|play\/blackjack)$/, '');
}

/** How requests are sent: with a timeout, and with every answer that is not a service's as an error. */
export function transportOf(
  address: string,
  timeoutMs: number = TIMEOUT_MS,
  send: Send = (request, options) => fetch(request, { ...options, redirect: 'error' }),
): Pick<ClientOptions, 'fetch'> {
  return {
    async fetch(request) {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signal = request.signal ? AbortSignal.any([request.signal, timeout]) : timeout;
      let response: Response;
      let text: string;
      try {
        response = await send(request, { signal });
        text = await response.text();
      } catch (error) {
        // Whoever gave up by a signal of their own is told so.
        if (request.signal?.aborted) throw request.signal.reason;
        const reason = timeout.aborted ? `no answer in ${timeoutMs / 1000} s` : messageOf(error as Error);
        throw new NoAnswerError(`The service at ${address} does not answer: ${reason}`, { cause: error });
      }
      const strange = strangeness(response, text);
      if (strange !== undefined) throw new NoAnswerError(`${address} answers with ${strange}`);
      return new Response(response.status === 204 ? null : text, response);
    },
  };
}

/** `fetch` says only that it failed; its cause says why. */
function messageOf(error: Error & { code?: string }): string {
  const cause = error.cause as (Error & { code?: string }) | undefined;
  return cause?.message || cause?.code || error.message || error.code || error.name;
}

/** Why an answer is not a service's: something else listens there, or stands in between. Undefined where it is one. */
function strangeness({ status, headers }: Response, text: string): string | undefined {
  if (status === 204) return undefined;
  const isSuccess = status >= 200 && status < 300;
  if (isSuccess && headers.get('Content-Type')?.startsWith('text/csv')) return undefined;
  let body: { errorCode?: unknown } | null;
  try {
    body = JSON.parse(text);
  } catch {
    return `HTTP ${status}, and with no JSON`;
  }
  return isSuccess || typeof body?.errorCode === 'string'
    ? undefined
    : `HTTP ${status}, and not as the service does`;
}

/** What a call of the API resolves with. */
export interface Answered<Body> {
  readonly data?: Body;
  readonly error?: unknown;
  readonly response: Response;
}

/** How methods call the API: reads are repeated; writes only where the rate limit refused them. */
export interface Calls {
  read<Body>(call: (api: PartnerApi) => Promise<Answered<Body>>): Promise<Body>;
  write<Body>(call: (api: PartnerApi) => Promise<Answered<Body>>): Promise<Body>;
}

/**
 * The body of a success: `await bodyOf(api.GET('/games'))`.
 * @throws SpindleError where the service answered with an error, NoAnswerError where it did not answer
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
    requestId: response.headers.get('X-Request-Id') ?? undefined,
    retryAfterSeconds: Number.isFinite(wait) ? wait : undefined,
  });
}
