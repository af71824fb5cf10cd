/** What a route is, and how one runs: access, window, body, handler, answer. The spin has a path of its own (spin.ts). */
import fastJson from 'fast-json-stringify';
import type { Static, TSchema } from '#typebox';
import { KIND } from '../cells/batch.js';
import type { SpinCommand } from '../cells/deal.js';
import { BASES, BODY_LIMIT, PARTNER_VERSION } from '../contract/apis.js';
import { CSV_TYPE, prefersCsv } from '../contract/csv.js';
import type { Endpoint } from '../contract/endpoint.js';
import { pathOfVersion } from '../domain/apiVersion.js';
import { ApiError, ERRORS, type ErrorEntry, invalid } from '../domain/errors.js';
import { unmarked } from '../domain/exactJson.js';
import type { Partner } from '../domain/game.js';
import type { Role } from '../domain/operator.js';
import type { Access } from './access.js';
import { bodyText, check, type JsonObject, parseObject } from './body.js';
import type { Exchange } from './exchange.js';
import type { Handle } from './listener.js';
import type { Caller as OperatorCaller } from './operatorAccess.js';
import { withRequestId } from './partner/idempotencyKey.js';
import { CountedCommand, REPLAYED } from './partner/spin.js';
import type { Replies, Window } from './reply.js';

type ParamsOf<Of> = Of extends { readonly params: infer Params }
  ? { readonly [Name in keyof Params]: string }
  : Readonly<Record<string, string>>;
type QueryOf<Of> = Of extends { readonly query: infer Query extends TSchema }
  ? Readonly<Static<Query>>
  : Readonly<Record<string, unknown>>;
type BodyOf<Of> = Of extends { readonly ownCheck: true }
  ? JsonObject
  : Of extends { readonly body: infer Body extends TSchema }
    ? Static<Body>
    : JsonObject;

/** A request of an endpoint, read as that says. */
export interface RouteRequest<Of = Endpoint> {
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
  readonly params: ParamsOf<Of>;
  /** Checked against the endpoint's schema, with its defaults; what was not sent and has none is absent. */
  readonly query: QueryOf<Of>;
  /** Checked against the endpoint's schema, where it has one and the handler does not check by itself. */
  readonly body: BodyOf<Of>;
  /** The body as it was sent; empty where the endpoint takes none. */
  readonly text: string;
}

/** An endpoint with what answers its requests. */
export interface Route extends Endpoint {
  handle(request: RouteRequest): unknown;
  /** The result as CSV, for a caller that would rather have that than JSON. */
  csv?(result: unknown, request: RouteRequest): string;
  /** The same piece by piece, in place of `handle`: of any length. The first piece comes once the request is found right. */
  csvPieces?(request: RouteRequest): AsyncGenerator<string>;
}

/** Gives an endpoint its handler, which may answer later. @param asCsv how it answers where its `hasCsv` is true */
export const route = <Of extends Endpoint, Result>(
  endpoint: Of,
  handle: (request: RouteRequest<Of>) => Result,
  asCsv: {
    csv?: (result: Awaited<Result>, request: RouteRequest<Of>) => string;
    csvPieces?: (request: RouteRequest<Of>) => AsyncGenerator<string>;
  } = {},
): Route => ({ ...endpoint, handle, ...asCsv }) as Route;

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
      const result = await route.handle(request);
      if (route.csv !== undefined && prefersCsv(exchange.head.accept)) {
        const text = route.csv(result, request);
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
  const query = readQuery(route.query, exchange.head.query);
  let body: JsonObject = {};
  let text = '';
  if (route.body !== undefined) {
    if (exchange.body === undefined) {
      throw invalid([
        { path: '', message: `The body is over the limit of ${route.bodyLimit ?? BODY_LIMIT} bytes` },
      ]);
    }
    text = bodyText(exchange.body);
    body = parseObject(text);
    if (takesRequestId(route.body)) body = withRequestId(body, exchange.head.idempotencyKey);
    if (route.ownCheck !== true) check(route.body, body);
  }
  return { params, query, body, text, isSecure: exchange.head.requestOrigin.startsWith('https:') };
}

/** Its requests may be sent again: what guards their ids on one route guards them on all. */
const takesRequestId = (body: TSchema): boolean =>
  'requestId' in ((body as { properties?: object }).properties ?? {});

/** Percent-encoded UTF-8. @throws ApiError (KS-4101) where it is not. */
function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalid([{ path: '', message: `The path part «${part}» is not percent-encoded UTF-8` }]);
  }
}

/** Of numbers whole ones only: what the endpoints' queries have. */
function readQuery(schema: TSchema | undefined, text: string): Record<string, number | string> {
  const query: Record<string, number | string> = {};
  if (schema === undefined) return query;
  const { properties } = schema as TSchema & {
    properties: Record<string, { type: string; default?: number }>;
  };
  const given = new URLSearchParams(text);
  for (const [name, { type, default: otherwise }] of Object.entries(properties)) {
    const value = given.get(name);
    if (value === null) {
      if (otherwise !== undefined) query[name] = otherwise;
    } else if (type === 'string') query[name] = value;
    else query[name] = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  }
  check(schema, query);
  return query;
}

/**
 * Where a list goes on in a version that has cursors (contract/preview.ts).
 * @param query of an endpoint that need not have one
 * @throws ApiError (KS-4101) where the text is no such place
 */
export function cursorOf(query: object, pattern: RegExp): string | undefined {
  const { cursor } = query as { cursor?: string };
  if (cursor === undefined || pattern.test(cursor)) return cursor;
  throw wrongCursor();
}

export const wrongCursor = (): ApiError =>
  invalid([{ path: '/cursor', message: 'must be a `nextCursor` of this list' }]);

/**
 * Makes what was just written known in this process. What was written stands, and is answered, whether or not it can be
 * read back now: the poll reads it later.
 */
export const learn = (services: { refresh(): Promise<void> }): Promise<void> =>
  services.refresh().catch(() => {});
