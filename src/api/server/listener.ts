/** The types and constants that both implementations of the HTTP server share. */
import type { Connections } from './connections.js';
import type { Exchange } from './exchange.js';

/**
 * Starts to answer a request whose head was read. A route that needs the body takes it with {@link
 * Exchange.takeBody}.
 */
export type Handle = (exchange: Exchange) => void;

export interface ServerRoute {
  /** `get` also answers HEAD: with the head of the answer to GET, without its body. */
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'del' | 'any';
  /** Path pattern: `:name` matches one segment; `/*` at the end matches the remaining path. */
  readonly pattern: string;
  readonly hasQuery?: boolean;
  /** Name of the operation in the metrics. */
  readonly operation: string;
  /**
   * Maximum body size in bytes; a longer body is discarded. 0: the route takes no body and ignores a body
   * that is sent.
   */
  readonly bodyLimit: number;
  readonly handle: Handle;
}

export type HttpServerKind = 'uws' | 'node';

export interface ListenerOptions {
  /**
   * Answers a request whose handler threw an error. Such an error is a defect of the service and must not end
   * the process.
   */
  readonly onDefect: (exchange: Exchange, error: unknown) => void;
  readonly connections: Connections;
  /** Returns the key of the rate limits for unauthenticated clients: an IPv4 address or an IPv6 /64. */
  readonly clientOf: (exchange: Exchange) => string;
  /**
   * Seconds after which a connection without an open request is closed. uWebSockets.js always uses 10 to 12
   * s.
   */
  readonly idleTimeoutSeconds: number;
}

export interface HttpListener {
  readonly kind: HttpServerKind;
  /** Number of requests that are not answered yet. */
  readonly open: number;
  /**
   * Several processes of this service may share a port (SO_REUSEPORT).
   * @param port 0: any free port
   * @returns the port
   * @throws Error if the port is not available
   */
  listen(host: string, port: number): Promise<number>;
  /** Stops accepting connections. Open connections continue. */
  stopListening(): void;
  close(): void;
}

/**
 * Number of bytes that are read of a body over its limit, so that the client has sent everything and reads
 * the answer. If the body is even longer, the request is answered at this point and the connection is cut.
 */
export const DRAIN_BYTES_MAX = 1_048_576;

/** Maximum bytes of a request's head: its request line and headers. A larger one gets 431. */
export const HEAD_BYTES_MAX = 8192;

export const ACCEPTED_ENCODING = 'chunked';

/**
 * Returns whether the Expect header asks for `100 Continue`, which is the only supported expectation (RFC
 * 9110, 10.1.1).
 */
export const isContinue = (expectation: string): boolean =>
  expectation.trim().toLowerCase() === '100-continue';

/**
 * Joins the values of a header that came more than once (RFC 9110, 5.3). If the header has a single value,
 * the result is not a valid one, so that a repeated header is refused like a wrong one.
 */
export const joined = (before: string, value: string): string =>
  before === '' ? value : `${before}, ${value}`;

/** Separates the values of a repeated Idempotency-Key. No header value can contain it. */
export const REPEATED = '\n';

/** Returns whether an Authorization header has a bearer token (RFC 6750, 2.1). */
export const isBearer = (authorization: string): boolean => /^bearer /i.test(authorization);

export const EMPTY_BODY = Buffer.alloc(0);

export function beginHandling(route: ServerRoute, exchange: Exchange, { onDefect }: ListenerOptions): void {
  try {
    route.handle(exchange);
  } catch (error) {
    onDefect(exchange, error);
  }
}
