/** What the two implementations of the HTTP server have in common. */
import type { Connections } from './connections.js';
import type { Exchange } from './exchange.js';

/** Begins to answer a request whose head was read. A route that needs the body takes it with {@link Exchange.takeBody}. */
export type Handle = (exchange: Exchange) => void;

export interface ServerRoute {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'del' | 'any';
  /** `:name` stands for one part of the path, `/*` at the end for the rest. */
  readonly pattern: string;
  /** It reads the query. */
  readonly hasQuery?: boolean;
  /** It answers HEAD as it does GET. */
  readonly answersHead?: boolean;
  /** What it is called in the metrics. */
  readonly operation: string;
  /** Bytes; a longer body is not kept. 0: the route takes none, and one that is sent is not looked at. */
  readonly bodyLimit: number;
  readonly handle: Handle;
}

export type HttpServerKind = 'uws' | 'node';

export interface ListenerOptions {
  /** Answers a request whose handler threw: a defect of ours, which must not end the process. */
  readonly onDefect: (exchange: Exchange, error: unknown) => void;
  readonly connections: Connections;
  /** Who asked, as the windows of strangers count: an IPv4 address or an IPv6 /64. */
  readonly clientOf: (exchange: Exchange) => string;
  /** A connection without a request under way is closed after it, seconds; uWebSockets.js closes them after 10 to 12 s. */
  readonly idleTimeoutSeconds: number;
}

export interface HttpListener {
  readonly kind: HttpServerKind;
  /** Requests that are not answered yet. */
  readonly open: number;
  /**
   * Listens. Several processes of this service may share a port (SO_REUSEPORT).
   * @param port 0: any that is free
   * @returns the port
   * @throws Error where it can't be had
   */
  listen(host: string, port: number): Promise<number>;
  /** Accepts no more connections; what is open goes on. */
  stopListening(): void;
  /** Closes every connection. */
  close(): void;
}

/**
 * A body over its limit is read on to this many bytes, so that the client has sent all and reads the answer; one that
 * goes on is answered then and cut.
 */
export const DRAIN_BYTES_MAX = 1_048_576;

/** The only Transfer-Encoding that is taken. */
export const ACCEPTED_ENCODING = 'chunked';

/** The only expectation that is met: a client that waits to be asked for the body (RFC 9110, 10.1.1). */
export const isContinue = (expectation: string): boolean =>
  expectation.trim().toLowerCase() === '100-continue';

export const EMPTY_BODY = Buffer.alloc(0);

export function beginHandling(route: ServerRoute, exchange: Exchange, { onDefect }: ListenerOptions): void {
  try {
    route.handle(exchange);
  } catch (error) {
    onDefect(exchange, error);
  }
}
