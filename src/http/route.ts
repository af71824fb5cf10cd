/** What a route is, and how one runs: access, window, body, handler, answer. The spin has a path of its own (spin.ts). */
import fastJson from 'fast-json-stringify';
import type { TSchema } from '#typebox';
import { KIND } from '../cells/batch.js';
import type { SpinCommand } from '../cells/deal.js';
import { pathOfVersion } from '../domain/apiVersion.js';
import { ApiError, ERRORS, type ErrorEntry } from '../domain/errors.js';
import { unmarked } from '../domain/exactJson.js';
import type { Partner } from '../domain/game.js';
import type { Role } from '../domain/operator.js';
import { ID_MAX } from '../domain/requests.js';
import type { Access } from './access.js';
import { bodyText, check, type JsonObject, parseObject } from './body.js';
import type { Exchange } from './exchange.js';
import type { Handle } from './listener.js';
import type { Caller as OperatorCaller } from './operatorAccess.js';
import { withRequestId } from './partner/idempotencyKey.js';
import { CountedCommand, REPLAYED } from './partner/spin.js';
import type { Replies, Window } from './reply.js';

export const PARTNER_VERSION = 'v1';
export const PARTNER_BASE = pathOfVersion(PARTNER_VERSION);
export const OPERATOR_BASE = '/api/operator/v1';

/** Where the routes of each API are. `play` has a version of its own, and takes the keys of partners. */
export const BASES = {
  partner: PARTNER_BASE,
  operator: OPERATOR_BASE,
  play: '/api/play/blackjack',
} as const;

/** The nouns by which the documents group operations. */
export const TAGS = {
  'PAR sheets': 'The mathematics of slot games',
  Games: 'Games, their queues of outcomes and their totals',
  Raffles: 'Finite sealed pools, which anybody can check once they are sold out',
  Rounds: 'Play blackjack, one action after the other; read, void and close what was dealt',
  'Communal progressive': 'A bonus pot that the players of a slot game share',
  Spins: 'Deal the next outcome of a game, and read what was dealt',
  Players: 'Balances of players',
  Sandbox: 'Try outcomes that are rare; of sandbox accounts only',
  Settlements: 'One report for each UTC day with games, by revision',
  Webhooks: 'Signed events to a URL of the partner',
  Partners: 'Accounts of partners and their settings',
  'API keys': 'Keys of partners',
  Operators: 'Who runs the service: names, roles and keys; sessions of the console',
  'API versions': 'Versions of the partner API, who uses them and when they end',
  'Audit log': 'Changes that the operator made',
  Service: 'The service itself',
} as const;

export interface RouteRequest {
  /** The version of the partner API that is asked. */
  readonly apiVersion: string;
  /** The partner whose key it is; on operator routes never looked at. */
  readonly partner: Partner;
  /** Who asks, as the audit log names it; on partner routes empty. */
  readonly actor: string;
  /** Who asks, in full; on partner routes never looked at. */
  readonly operator: OperatorCaller;
  /** The browser's page is served over TLS. */
  readonly isSecure: boolean;
  /** Decoded parts of the path, by name. */
  readonly params: Readonly<Record<string, string>>;
  /** Checked against the route's query schema, with its defaults. */
  readonly query: Readonly<Record<string, number>>;
  /** Texts of the query; what was not sent is absent. */
  readonly words: Readonly<Record<string, string>>;
  /** Checked against the route's body schema, where it has one. */
  readonly body: JsonObject;
  /** The body as it was sent; empty where the route takes none. */
  readonly text: string;
}

export interface Route {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Below the base, with `{name}` for a part. */
  readonly path: string;
  /** A schema for each variable part of the path, for the document only: the handler answers 404 to a strange id. */
  readonly params?: Readonly<Record<string, TSchema>>;
  readonly operationId: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  /** What the summary leaves open; Markdown. */
  readonly description?: string;
  readonly scope: keyof typeof BASES;
  /** For production accounts there is no such path. */
  readonly sandboxOnly?: true;
  /** Which of the partner's windows a request counts against; absent: `api`. */
  readonly window?: 'spin' | 'api';
  /** The role that an operator needs; absent: `auditor` to read, `operator` to change something. */
  readonly role?: Role;
  /** A request may be answered with what an earlier one was answered: {@link Replayed}. */
  readonly replays?: true;
  readonly bodyLimit?: number;
  readonly body?: TSchema;
  /** The handler checks the body by itself; the schema is for the document only. */
  readonly ownCheck?: boolean;
  readonly query?: TSchema;
  readonly status: number;
  /** Absent: no body (204). */
  readonly response?: TSchema;
  /** The result has sums, which may be beyond a double: {@link ExactNumber}. */
  readonly hasSums?: true;
  /** The result as CSV, for a caller that would rather have that than JSON. */
  readonly csv?: (result: never, request: RouteRequest) => string;
  /** The same piece by piece, in place of `handle`: of any length. The first piece comes once the request is found right. */
  readonly csvPieces?: (request: RouteRequest) => AsyncGenerator<string>;
  /** Further errors of this operation, beside those that every route of its scope has. */
  readonly errors: readonly ErrorEntry[];
  /** What a fault of ours is called here. */
  readonly failure: ErrorEntry;
  /** Absent: answered elsewhere (the spin). */
  readonly handle?: (request: RouteRequest) => Promise<unknown> | unknown;
}

/** The response of a route whose result has sums: {@link Route.hasSums}. */
export const summed = (response: TSchema) => ({ response, hasSums: true }) as const;

/** The result of a handler that repeats an earlier answer. */
export class Replayed {
  constructor(readonly body: unknown) {}
}

/** A result with header lines beside it, such as a cookie. */
export class WithHeaders {
  /** @param headers lines of the service's own making, joined by CRLF */
  constructor(
    readonly body: unknown,
    readonly headers: string,
  ) {}
}

export const BODY_LIMIT = 65_536;

type Caller = Pick<RouteRequest, 'partner' | 'actor' | 'operator'>;

/** The role that an operator needs for a route. */
const roleFor = ({ role, method }: Pick<Route, 'role' | 'method'>): Role =>
  role ?? (method === 'get' ? 'auditor' : 'operator');

export interface RouteServices {
  submit(command: SpinCommand): void;
  onFault(exchange: Exchange, route: Route, error: unknown, entry: ErrorEntry): void;
  /** The error says that a store does not answer, and nothing of this program. */
  isStoreAway(error: unknown): boolean;
}

/** Makes the function that serves a route. */
export function serve(
  route: Route,
  access: Access,
  replies: Replies,
  services: RouteServices,
  apiVersion = PARTNER_VERSION,
): Handle {
  const serialize = serializerOf(route);
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
  const base = route.scope === 'partner' ? pathOfVersion(apiVersion) : BASES[route.scope];
  const kind = route.window === 'spin' ? KIND.countSpin : KIND.countApi;

  const run = async (exchange: Exchange, caller: Caller, window: Window | undefined): Promise<void> => {
    try {
      if (route.sandboxOnly === true && caller.partner.environment !== 'sandbox')
        throw new ApiError(ERRORS.notFound);
      const request = { ...readRequest(route, names, base, exchange), ...caller, apiVersion };
      if (route.csvPieces !== undefined && prefersCsv(exchange.head.accept)) {
        await replies.stream(exchange, route.csvPieces(request), CSV_TYPE, window);
        return;
      }
      const result = await route.handle!(request);
      if (route.csv !== undefined && prefersCsv(exchange.head.accept)) {
        const text = route.csv(result as never, request);
        replies.json(exchange, route.status, text, window, '', undefined, CSV_TYPE);
        return;
      }
      const headers = result instanceof WithHeaders ? result.headers : '';
      const body = result instanceof Replayed || result instanceof WithHeaders ? result.body : result;
      const text = serialize === undefined ? '' : serialize(body);
      replies.json(exchange, route.status, text, window, result instanceof Replayed ? REPLAYED : headers);
    } catch (error) {
      if (error instanceof ApiError) {
        const status = exchange.body === undefined ? 413 : error.entry.status;
        replies.error(exchange, error.entry, window, { details: error.details, status });
        return;
      }
      const isAway = route.failure === ERRORS.internal && services.isStoreAway(error);
      const entry = isAway ? ERRORS.unavailable : route.failure;
      services.onFault(exchange, route, error, entry);
      replies.error(exchange, entry, window);
    }
  };

  return (exchange) => {
    // The body costs nothing before the key is right and the window has room.
    if (route.scope === 'operator') {
      access.operator(
        exchange,
        roleFor(route),
        (operator) => void run(exchange, { partner: NO_PARTNER, actor: operator.name, operator }, undefined),
      );
      return;
    }
    access.partner(exchange, (partner) => {
      exchange.keepBody();
      const counted = (window: Window): void =>
        void run(exchange, { partner, actor: '', operator: NO_OPERATOR }, window);
      services.submit(new CountedCommand(exchange, partner, replies, kind, counted));
    });
  };
}

type FastJsonSchema = Parameters<typeof fastJson>[0];
type Serialize = (result: unknown) => string;

/** By the schema of the response. All together take 0.15 s, so each is made with its first answer, not with the start. */
const SERIALIZERS = { plain: new WeakMap<TSchema, Serialize>(), summed: new WeakMap<TSchema, Serialize>() };

function serializerOf({ response, hasSums }: Route): Serialize | undefined {
  if (response === undefined) return undefined;
  const made = hasSums === true ? SERIALIZERS.summed : SERIALIZERS.plain;
  return (result) => {
    let serialize = made.get(response);
    if (serialize === undefined) {
      serialize = hasSums === true ? sumSerializer(response) : fastJson(response as FastJsonSchema);
      made.set(response, serialize);
    }
    return serialize(result);
  };
}

function sumSerializer(response: TSchema): Serialize {
  const serialize = fastJson(withoutNumbers(response) as FastJsonSchema);
  return (result) => unmarked(serialize(result));
}

/** The schema with no type where a number stands: such a member is written by JSON.stringify. */
function withoutNumbers(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutNumbers);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, anyOf } = schema as { type?: unknown; anyOf?: { type?: unknown }[] };
  const isNumber = (each: unknown): boolean => each === 'number' || each === 'integer';
  if (isNumber(type) || anyOf?.some((each) => isNumber(each.type))) return {};
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, withoutNumbers(value)]));
}

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/** The Accept header (RFC 9110, 12.5.1) ranks text/csv above application/json. */
export function prefersCsv(accept: string): boolean {
  const ranges = new Map<string, number>();
  for (const range of accept.toLowerCase().split(',')) {
    const [type, ...parameters] = range.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    ranges.set(type!, weight === undefined ? 1 : Number(weight.slice(2)));
  }
  const quality = (type: string): number =>
    ranges.get(type) ?? ranges.get(`${type.split('/')[0]}/*`) ?? ranges.get('*/*') ?? 0;
  return quality('text/csv') > quality('application/json');
}

const NO_PARTNER = Object.freeze({}) as Partner;
const NO_OPERATOR = Object.freeze({}) as OperatorCaller;

function readRequest(
  route: Route,
  names: readonly string[],
  base: string,
  exchange: Exchange,
): Omit<RouteRequest, keyof Caller | 'apiVersion'> {
  const parts = exchange.head.path.slice(base.length).split('/');
  const params: Record<string, string> = {};
  route.path.split('/').forEach((part, place) => {
    if (part.startsWith('{')) params[part.slice(1, -1)] = decodePart(parts[place] ?? '');
  });
  if (names.length > 0 && Object.keys(params).length !== names.length) throw new ApiError(ERRORS.notFound);
  const { query, words } = readQuery(route.query, exchange.head.query);
  let body: JsonObject = {};
  let text = '';
  if (route.body !== undefined) {
    if (exchange.body === undefined) {
      throw new ApiError(ERRORS.validationFailed, {
        details: [
          { path: '', message: `The body is over the limit of ${route.bodyLimit ?? BODY_LIMIT} bytes` },
        ],
      });
    }
    text = bodyText(exchange.body);
    body = parseObject(text);
    if (takesRequestId(route.body)) body = withRequestId(body, exchange.head.idempotencyKey);
    if (route.ownCheck !== true) check(route.body, body);
  }
  return { params, query, words, body, text, isSecure: exchange.head.requestOrigin.startsWith('https:') };
}

/** Its requests may be sent again: what guards their ids on one route guards them on all. */
const takesRequestId = (body: TSchema): boolean =>
  'requestId' in ((body as { properties?: object }).properties ?? {});

/** Percent-encoded UTF-8. @throws ApiError (KS-4101) where it is not. */
function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new ApiError(ERRORS.validationFailed, {
      details: [{ path: '', message: `The path part «${part}» is not percent-encoded UTF-8` }],
    });
  }
}

/** Whole numbers only: what the routes' queries have. */
function readQuery(
  schema: TSchema | undefined,
  text: string,
): { query: Record<string, number>; words: Record<string, string> } {
  const query: Record<string, number> = {};
  const words: Record<string, string> = {};
  if (schema === undefined) return { query, words };
  const { properties } = schema as TSchema & {
    properties: Record<string, { type: string; default: number }>;
  };
  const given = new URLSearchParams(text);
  for (const [name, { type, default: otherwise }] of Object.entries(properties)) {
    const value = given.get(name);
    if (type !== 'string') {
      query[name] = value === null ? otherwise : /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
    } else if (value !== null) words[name] = value;
  }
  check(schema, { ...query, ...words });
  return { query, words };
}

/** A number in a path that names a record; undefined where it can name none. */
export function pathId(text: string): number | undefined {
  return /^[1-9]\d{0,9}$/.test(text) && Number(text) <= ID_MAX ? Number(text) : undefined;
}

/** Where a list goes on in a version that has cursors (preview.ts). @throws ApiError (KS-4101) where the text is no such place */
export function cursorOf({ cursor }: RouteRequest['words'], pattern: RegExp): string | undefined {
  if (cursor === undefined || pattern.test(cursor)) return cursor;
  throw wrongCursor();
}

export const wrongCursor = (): ApiError =>
  new ApiError(ERRORS.validationFailed, {
    details: [{ path: '/cursor', message: 'must be a `nextCursor` of this list' }],
  });

/**
 * Makes what was just written known in this process. What was written stands, and is answered, whether or not it can be
 * read back now: the poll reads it later.
 */
export const learn = (services: { refresh(): Promise<void> }): Promise<void> =>
  services.refresh().catch(() => {});
