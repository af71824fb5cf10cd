/** The HTTP server: the only importer of uWebSockets.js. Reads requests whole and hands them on as exchanges. */

import {
  App,
  type HttpRequest,
  type HttpResponse,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { HEALTHY, type Health, type Service } from '../runtime/service.js';
import { Exchange } from './exchange.js';

/** What a route takes; the exchange's body is whole, or undefined where it is over the route's limit. */
export type Handle = (exchange: Exchange) => void;

export interface ServerRoute {
  readonly method: 'get' | 'post' | 'patch' | 'del' | 'any';
  readonly pattern: string;
  /** It reads the query. */
  readonly hasQuery?: boolean;
  /** What it is called in the metrics. */
  readonly operation: string;
  /** Bytes; a longer body is not kept. 0: the route takes none, and one that is sent is not looked at. */
  readonly bodyLimit: number;
  readonly handle: Handle;
}

/**
 * A body over its limit is read on to this many bytes, so that the client has sent all and reads the answer; one that
 * goes on is answered then and cut.
 */
const DRAIN_BYTES_MAX = 1_048_576;

const EMPTY = Buffer.alloc(0);

/** A stop waits so long for what has arrived to be answered. */
const DRAIN_MS = 5000;
const DRAIN_POLL_MS = 20;

export interface ServerOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Answers a request whose handler threw: a defect of ours, which must not end the process. */
  readonly onDefect: (exchange: Exchange, error: unknown) => void;
  /** From now on each answer closes its connection. */
  readonly onStopping: () => void;
  /** Nothing is under way that somebody may still be answered with. */
  readonly isIdle: () => boolean;
}

export class HttpServer implements Service {
  readonly name = 'HTTP server';
  readonly stopTimeoutMs = DRAIN_MS + 1000;
  readonly #app = App();
  readonly #idPrefix = randomBytes(5).toString('hex');
  #socket: us_listen_socket | undefined;
  #requests = 0;
  #open = 0;

  #port = 0;

  readonly #options: ServerOptions;

  constructor(routes: readonly ServerRoute[], options: ServerOptions) {
    this.#options = options;
    for (const route of routes) {
      const isExact = !/[:*]/.test(route.pattern);
      this.#app[route.method](route.pattern, (raw, request) => this.#accept(route, isExact, raw, request));
    }
  }

  /** Requests that are not answered yet. */
  get open(): number {
    return this.#open;
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#port;
  }

  /** Listens. Several processes of this service may share a port (SO_REUSEPORT). @throws where it can't be had. */
  start(): Promise<void> {
    const { host, port } = this.#options;
    return new Promise((resolve, reject) => {
      this.#app.listen(host, port, (socket: us_listen_socket | false) => {
        if (socket === false) {
          reject(new Error(`Port ${port} of ${host} is in use or can't be listened on`));
          return;
        }
        this.#socket = socket;
        this.#port = us_socket_local_port(socket);
        resolve();
      });
    });
  }

  /** Accepts no more connections, answers what has arrived, then closes every connection. */
  async stop(): Promise<void> {
    if (this.#socket !== undefined) us_listen_socket_close(this.#socket);
    this.#socket = undefined;
    this.#options.onStopping();
    const deadline = performance.now() + DRAIN_MS;
    do await pause(DRAIN_POLL_MS);
    while ((this.#open > 0 || !this.#options.isIdle()) && performance.now() < deadline);
    this.#app.close();
  }

  health(): Health {
    return HEALTHY;
  }

  #accept(route: ServerRoute, isExact: boolean, raw: HttpResponse, request: HttpRequest): void {
    let apiKey = '';
    let interfaceVersion = '';
    let accept = '';
    let lengths = 0;
    let hosts = 0;
    let encodings = 0;
    let isFramed = true;
    request.forEach((name, value) => {
      // By length first: most headers are none of these, and comparing text is what this loop costs.
      switch (name.length) {
        case 9:
          if (name === 'x-api-key') apiKey = value;
          break;
        case 14:
          if (name === 'content-length') lengths++;
          break;
        case 4:
          if (name === 'host') hosts++;
          break;
        case 17:
          if (name === 'transfer-encoding') {
            encodings++;
            isFramed = value.toLowerCase() === 'chunked';
          } else if (name === 'interface_version') interfaceVersion = value;
          break;
        case 6:
          if (name === 'accept') accept = value;
          break;
      }
    });
    // Two lengths, a length and chunks, or a coding that isn't chunks are read differently by different servers: a proxy
    // in front may see another request begin in the middle of this one (RFC 9112, 6.3). There is no answer that is safe
    // but to hang up.
    if (lengths > 1 || hosts > 1 || encodings + lengths > 1 || !isFramed) {
      raw.close();
      return;
    }
    this.#open++;
    const exchange = new Exchange(
      raw,
      {
        // What the route says already isn't asked of the request: each question crosses into C++.
        method: route.method === 'any' ? request.getMethod() : route.method,
        path: isExact ? route.pattern : request.getUrl(),
        query: route.hasQuery ? (request.getQuery() ?? '') : '',
        apiKey,
        interfaceVersion,
        accept,
      },
      `${this.#idPrefix}-${(++this.#requests).toString(36)}`,
      route.operation,
      this.#settled,
    );
    raw.onAborted(() => exchange.abort());
    let chunks: Buffer[] | undefined;
    let received = 0;
    raw.onData((chunk, isLast) => {
      if (exchange.closesConnection) return;
      received += chunk.byteLength;
      if (route.bodyLimit > 0 && received <= route.bodyLimit) {
        if (isLast && chunks === undefined) {
          // Not copied: the bytes hold until this callback returns, and handlers parse before their first await.
          exchange.body = Buffer.from(chunk);
          this.#handle(route, exchange);
          return;
        }
        chunks ??= [];
        chunks.push(Buffer.from(chunk.slice(0)));
        if (!isLast) return;
        exchange.body = Buffer.concat(chunks);
        this.#handle(route, exchange);
        return;
      }
      chunks = undefined;
      if (received > DRAIN_BYTES_MAX) {
        exchange.closesConnection = true;
        // No more is read while the answer is made: the sender has to wait.
        raw.pause();
      }
      if (!isLast && !exchange.closesConnection) return;
      if (route.bodyLimit === 0) exchange.body = EMPTY;
      this.#handle(route, exchange);
    });
  }

  #handle(route: ServerRoute, exchange: Exchange): void {
    try {
      route.handle(exchange);
    } catch (error) {
      this.#options.onDefect(exchange, error);
    }
  }

  readonly #settled = (): void => {
    this.#open--;
  };
}
