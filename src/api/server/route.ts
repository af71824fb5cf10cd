/** What a route is: an endpoint with the handler of its requests. */
import type { Static, TSchema } from '#typebox';
import { type ApiError, invalid } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import type { Endpoint } from '../contract/endpoint.js';
import type { JsonObject } from './body.js';
import type { Caller as OperatorCaller } from './operatorAccess.js';

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
  /** Header lines of `csvPieces`, asked for before them. */
  csvHeaders?(request: RouteRequest): Promise<string>;
}

/** Gives an endpoint its handler, which may answer later. @param asCsv how it answers where its `hasCsv` is true */
export const route = <Of extends Endpoint, Result>(
  endpoint: Of,
  handle: (request: RouteRequest<Of>) => Result,
  asCsv: {
    csv?: (result: Awaited<Result>, request: RouteRequest<Of>) => string;
    csvPieces?: (request: RouteRequest<Of>) => AsyncGenerator<string>;
    csvHeaders?: (request: RouteRequest<Of>) => Promise<string>;
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

/**
 * Returns the cursor of a request: the place where its list goes on.
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
export const learn = (catalog: { refresh(): Promise<void> }): Promise<void> =>
  catalog.refresh().catch(() => {});
