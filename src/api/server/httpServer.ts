/**
 * The HTTP server. It reads the head of a request and passes it on as an exchange; a route takes the body if
 * it needs one. There are two implementations: uWebSockets.js if its binding loads, otherwise node:http.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { HEALTHY, type Health, type Service } from '../../platform/runtime/service.js';
import type { Connections } from './connections.js';
import {
  HEAD_BYTES_MAX,
  type HttpListener,
  type HttpServerKind,
  type ListenerOptions,
  type ServerRoute,
} from './listener.js';

const DRAIN_POLL_MS = 20;

export interface ServerOptions extends ListenerOptions {
  /** Undefined: uWebSockets.js if its binding loads, otherwise node:http. */
  readonly kind: HttpServerKind | undefined;
  readonly host: string;
  /** Port to listen on; 0: any free port. */
  readonly port: number;
  /** Maximum wait for open requests to be answered during a stop, in ms. */
  readonly graceMs: number;
  /** Called when the stop begins. From then on each answer closes its connection. */
  readonly onStopping: () => void;
  /** Returns true if no work is pending whose result a client may still receive. */
  readonly isIdle: () => boolean;
}

export class HttpServer implements Service {
  readonly name = 'HTTP server';
  #port = 0;

  private constructor(
    private readonly listener: HttpListener,
    private readonly options: ServerOptions,
  ) {}

  /** @throws Error if `uws` is requested and its binding does not load */
  static async make(routes: readonly ServerRoute[], options: ServerOptions): Promise<HttpServer> {
    return new HttpServer(await makeListener(routes, options), options);
  }

  get stopTimeoutMs(): number {
    return this.options.graceMs + 1000;
  }

  get kind(): HttpServerKind {
    return this.listener.kind;
  }

  /** Number of requests that are not answered yet. */
  get open(): number {
    return this.listener.open;
  }

  get connections(): Connections {
    return this.options.connections;
  }

  get port(): number {
    return this.#port;
  }

  async start(): Promise<void> {
    this.#port = await this.listener.listen(this.options.host, this.options.port);
  }

  /** Stops accepting connections, answers the requests that have arrived, then closes every connection. */
  async stop(): Promise<void> {
    this.listener.stopListening();
    this.options.onStopping();
    const deadline = performance.now() + this.options.graceMs;
    do await pause(DRAIN_POLL_MS);
    while ((this.open > 0 || !this.options.isIdle()) && performance.now() < deadline);
    this.listener.close();
  }

  health(): Health {
    return HEALTHY;
  }
}

/** The module of an implementation is imported only if that implementation is used. */
async function makeListener(
  routes: readonly ServerRoute[],
  options: ListenerOptions & Pick<ServerOptions, 'kind'>,
): Promise<HttpListener> {
  if (options.kind !== 'node') {
    try {
      // uWebSockets.js reads its limit, 4 KB by default, once when it is loaded.
      process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(HEAD_BYTES_MAX);
      const { UwsListener } = await import('./uwsListener.js');
      return new UwsListener(routes, options);
    } catch (error) {
      if (options.kind === 'uws') throw error;
    }
  }
  const { NodeListener } = await import('./nodeListener.js');
  return new NodeListener(routes, options);
}
