/** Types of a partner's requests and responses, and checks that apply to every response. */
import { type Changing, Violation, type WindowKind, type WindowSeen } from './changing.js';
import { at, type Json, numbersAsText } from './decimal.js';

export interface Key {
  readonly keyId: number;
  readonly apiKey: string;
  readonly isRevoked: Changing<boolean>;
}

export interface SpinRequest {
  readonly kind: 'spin';
  readonly gameId: number;
  readonly playerId: string;
  /** The original text of the JSON number. */
  readonly wager: string;
  readonly requestId: string | undefined;
  readonly body: string;
}

/** A request whose response does not depend on spins. One of several statuses and codes is permitted. */
export interface FixedRequest {
  readonly kind: 'fixed';
  readonly window: WindowKind;
  readonly what: string;
  readonly allowed: readonly string[];
}

/** A tester's choice of the outcome of a player's next spin. */
export interface ChoiceRequest {
  readonly kind: 'choose';
  readonly gameId: number;
  readonly playerId: string;
  readonly combination: number;
}

export type Request =
  | SpinRequest
  | ChoiceRequest
  | FixedRequest
  | { readonly kind: 'player'; readonly playerId: string }
  | { readonly kind: 'page'; readonly playerId: string; readonly page: number; readonly limit: number }
  | { readonly kind: 'lookup'; readonly spinId: string }
  | { readonly kind: 'games' };

export interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

export interface Exchange {
  readonly request: Request;
  readonly key: Key;
  /** Number of the front end that received the request. */
  readonly front: number;
  /** Time of the request by performance.now(), like all times in this type. */
  readonly sentAt: number;
  readonly receivedAt: number;
  /** Undefined if the connection was cut before the response. */
  readonly answer: Answer | undefined;
  /** True if only a part of the request was sent, so that the request can have no effect. */
  readonly isPartial: boolean;
  /** True if a store was unreachable at some time during the request. */
  readonly isTroubled: boolean;
}

/** Returns the name of a response for expectations and counts, such as `200` or `404 KS-4204`. */
export function outcomeOf({ status, text }: Answer): string {
  if (status < 400) return String(status);
  return `${status} ${at(parsed(text), 'errorCode') ?? 'without errorCode'}`;
}

/** Returns the body of a response with its numbers as text. Undefined if the body is not JSON. */
export function parsed(text: string): Json | undefined {
  try {
    return numbersAsText(text);
  } catch {
    return undefined;
  }
}

export const isReplayed = ({ headers }: Answer): boolean => headers.get('idempotent-replayed') === 'true';

/**
 * Permitted difference, in s, between the store's clock and the model's estimate. The store's clock is known
 * to the second.
 */
export const CLOCK_SLACK_S = 1.5;

const wholeNumber = (answer: Answer, header: string): number => {
  const text = answer.headers.get(header) ?? '';
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
};

/**
 * Returns the rate limit window in a response, or a text that describes its wrong headers.
 * @param from time of the request by the store's clock, in s
 * @param to time of the response by the store's clock, in s
 */
export function windowOf(answer: Answer, from: number, to: number): Omit<WindowSeen, 'isLimited'> | string {
  const limit = wholeNumber(answer, 'x-ratelimit-limit');
  const remaining = wholeNumber(answer, 'x-ratelimit-remaining');
  const reset = wholeNumber(answer, 'x-ratelimit-reset');
  if (Number.isNaN(limit + remaining + reset)) return 'The X-RateLimit headers are missing';
  if (remaining > limit) return 'There is more left of the window than its limit';
  if (reset % 60 !== 0) return 'The window does not end with a minute';
  if (reset <= from - CLOCK_SLACK_S || reset - 60 > to + CLOCK_SLACK_S) {
    return `The window is not of its minute: the store's clock is at ${from.toFixed(1)} to ${to.toFixed(1)}`;
  }
  if (answer.status !== 429) return { limit, remaining, reset };
  const retryAfter = wholeNumber(answer, 'retry-after');
  if (remaining !== 0) return 'A 429 must have nothing remaining';
  if (at(parsed(answer.text), 'retryAfter') !== String(retryAfter))
    return 'Retry-After and retryAfter differ';
  const endsAt = reset - retryAfter;
  if (retryAfter < 1 || endsAt < from - CLOCK_SLACK_S || endsAt > to + CLOCK_SLACK_S) {
    return `Retry-After ${retryAfter} does not lead to the end of the window`;
  }
  return { limit, remaining, reset };
}

/** Checks the body of an error: status, message, code, and details if the request is at fault. */
export function judgeError(exchange: Exchange, { text }: Answer): void {
  const json = parsed(text);
  const code = at(json, 'errorCode');
  if (at(json, 'status') !== 'error' || typeof at(json, 'message') !== 'string')
    fail(exchange, 'No error body');
  if (code !== 'KS-4101' && code !== 'KS-4102') return;
  const details = at(json, 'details');
  const isWhole =
    Array.isArray(details) &&
    details.length > 0 &&
    (details as Json[]).every(
      (each) => typeof at(each, 'path') === 'string' && typeof at(each, 'message') === 'string',
    );
  if (!isWhole) fail(exchange, 'The error has no details');
}

/**
 * The rate limit window of failed authentications of one client address. Other tests may fail from the same
 * address at the same time.
 */
export class AuthFailures {
  readonly #answered: { readonly reset: number; readonly receivedAt: number }[] = [];

  /** @throws Violation if the response to a failed authentication is not permitted or its window is wrong */
  take(
    exchange: Omit<Exchange, 'key' | 'answer'>,
    answer: Answer,
    allowed: readonly string[],
    clock: (time: number) => number,
  ): void {
    function complain(what: string): never {
      fail({ ...exchange, answer }, what);
    }
    const { sentAt, receivedAt, isTroubled } = exchange;
    const outcome = outcomeOf(answer);
    // A wrong key is still rejected while no store can count the failure.
    if (isTroubled && allowed.includes(outcome)) return;
    const window = windowOf(answer, clock(sentAt), clock(receivedAt));
    if (typeof window === 'string') complain(window);
    const { limit, remaining, reset } = window;
    const before = this.#answered.filter((each) => each.reset === reset && each.receivedAt < sentAt).length;
    if (remaining > Math.max(0, limit - before - 1)) complain(`${before} failed before in this window`);
    const wanted =
      before >= limit ? ['429 KS-4293'] : remaining === 0 ? [...allowed, '429 KS-4293'] : allowed;
    if (allowed.length === 0 || !wanted.includes(outcome)) {
      complain(`Expected ${allowed.length === 0 ? 'to be let in' : wanted.join(' or ')}`);
    }
    this.#answered.push({ reset, receivedAt });
  }
}

const TEXT_MAX = 600;
const short = (text: string): string => (text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX)}…`);

export function describe({ request, answer, front, sentAt, receivedAt }: Told): string {
  const { kind, ...rest } = request;
  const asked = `${kind} at ${front} ${short(request.kind === 'spin' ? request.body : JSON.stringify(rest))}`;
  if (answer === undefined) return `${asked} → cut`;
  const took = `${(receivedAt - sentAt).toFixed(0)} ms`;
  const replayed = isReplayed(answer) ? ', replayed' : '';
  const left = answer.headers.get('x-ratelimit-remaining');
  return `${asked} → ${answer.status}${replayed}, ${left} left, ${took}: ${short(answer.text)}`;
}

/** The fields of an exchange that an error message contains. */
export type Told = Pick<Exchange, 'request' | 'answer' | 'front' | 'sentAt' | 'receivedAt'>;

export function fail(exchange: Told, what: string): never {
  throw new Violation(`${what}\n  ${describe(exchange)}`);
}

export interface Answered extends Answer {
  readonly asked: string;
  readonly json: Json | undefined;
}

export function complain({ asked, status, text }: Answered, what: string): never {
  throw new Violation(`${what}\n  ${asked} → ${status} ${text}`);
}

export const windowKindOf = (request: Request): WindowKind =>
  request.kind === 'spin' ? 'spin' : request.kind === 'fixed' ? request.window : 'API';
export const touchesState = ({ kind }: Request): boolean =>
  kind === 'spin' || kind === 'choose' || kind === 'player' || kind === 'page';
