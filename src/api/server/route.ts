/** Defines a route: an endpoint with the handler of its requests. */
import type { Static, TSchema } from '#typebox';
import { type ApiError, type ErrorEntry, invalid } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import type { Endpoint } from '../contract/endpoint.js';
import type { JsonObject } from './body.js';
import type { Caller as OperatorCaller } from './operatorAccess.js';

type NamesIn<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
type ParamsOf<Of> = Of extends { readonly path: infer Path extends string }
  ? Readonly<Record<string extends Path ? string : NamesIn<Path>, string>>
  : never;
type QueryOf<Of> = Of extends { readonly query: infer Query extends TSchema }
  ? Readonly<Static<Query>>
  : Readonly<Record<string, unknown>>;
type BodyOf<Of> = Of extends { readonly ownCheck: true }
  ? JsonObject
  : Of extends { readonly body: infer Body extends TSchema }
    ? Static<Body>
    : JsonObject;

export interface RouteRequest<Of = Endpoint> {
  /** The partner that owns the key. On operator routes it is not used. */
  readonly partner: Partner;
  /**
   * Returns the error of the partner's key if the key was revoked after the request arrived. A handler that
   * waits before it acts asks again.
   */
  refusal(): ErrorEntry | undefined;
  /** Time by which a partner's request should be answered, on the scale of performance.now(). */
  readonly deadline: number;
  /** Name of the operator as in the audit log. Empty on partner routes. */
  readonly actor: string;
  /** The operator that sends the request. On partner routes it is not used. */
  readonly operator: OperatorCaller;
  /** True if the browser loaded the page over TLS. */
  readonly isSecure: boolean;
  readonly params: ParamsOf<Of>;
  /**
   * Query parameters, validated against the endpoint's schema, with its defaults. Parameters that were not
   * sent and have no default are absent.
   */
  readonly query: QueryOf<Of>;
  /**
   * Body, validated against the endpoint's schema unless the endpoint has none or the handler validates it
   * itself.
   */
  readonly body: BodyOf<Of>;
  /** Body text as sent; empty if the endpoint takes no body. */
  readonly text: string;
}

export interface Route extends Endpoint {
  handle(request: RouteRequest): unknown;
  /** Renders the result as CSV for clients that prefer CSV to JSON. */
  csv?(result: unknown, request: RouteRequest): string;
  /**
   * Replaces `handle` for CSV results of any length: yields the CSV in chunks. The first chunk is yielded
   * after the request was validated.
   */
  csvPieces?(request: RouteRequest): AsyncGenerator<string>;
  /** Called before `csvPieces`. */
  csvHeaders?(request: RouteRequest): Promise<string>;
}

/**
 * Adds a handler, which may be asynchronous, to an endpoint.
 *
 * @param asCsv functions that render CSV, if the endpoint has a `csvExample`
 */
export const route = <Of extends Endpoint, Result>(
  endpoint: Of,
  handle: (request: RouteRequest<Of>) => Result,
  asCsv: {
    csv?: (result: Awaited<Result>, request: RouteRequest<Of>) => string;
    csvPieces?: (request: RouteRequest<Of>) => AsyncGenerator<string>;
    csvHeaders?: (request: RouteRequest<Of>) => Promise<string>;
  } = {},
): Route => ({ ...endpoint, handle, ...asCsv }) as Route;

/** Result of a handler that replays an earlier answer. */
export class Replayed {
  constructor(readonly body: unknown) {}
}

/**
 * Result of a change that is on record and not yet in force. It is answered with status 202. The endpoint
 * declares `mayBePending`.
 */
export class Pending {
  constructor(readonly body: unknown) {}
}

/** Result of a handler that writes the JSON itself, with the members in the order of the schema. */
export class JsonText {
  constructor(readonly text: string) {}
}

/** Result of a handler with additional header lines, such as a cookie. */
export class WithHeaders {
  /** @param headers lines made by the service, joined by CRLF */
  constructor(
    readonly body: unknown,
    readonly headers: string,
  ) {}
}

/** Returns the cursor of a request, which is the position where its list continues. */
export function cursorOf(query: object, pattern: RegExp): string | undefined {
  const { cursor } = query as { cursor?: string };
  if (cursor === undefined || pattern.test(cursor)) return cursor;
  throw wrongCursor();
}

export const wrongCursor = (): ApiError =>
  invalid([{ path: '/cursor', message: 'must be a `nextCursor` of this list' }]);

/**
 * Refreshes the catalog after a write. If the refresh fails, the write is still in force and is answered; the
 * next poll of the catalog reads it.
 */
export const learn = (catalog: { refresh(): Promise<void> }): Promise<void> =>
  catalog.refresh().catch(() => {});
