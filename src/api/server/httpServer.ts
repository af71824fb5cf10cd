/**
 * The HTTP server: reads the head of a request and hands it on as an exchange, which takes the body where a route needs it. Two implementations: uWebSockets.js where its binding
 * loads, node:http elsewhere.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { HEALTHY, type Health, type Service } from '../../platform/runtime/service.js';
import type { Connections } from './connections.js';
import type { HttpListener, HttpServerKind, ListenerOptions, ServerRoute } from './listener.js';

const DRAIN_POLL_MS = 20;

export interface ServerOptions extends ListenerOptions {
  /** Undefined: uWebSockets.js where its binding loads, else node:http. */
  readonly kind: HttpServerKind | undefined;
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** A stop waits so long for what has arrived to be answered. */
  readonly graceMs: number;
  /** From now on each answer closes its connection. */
  readonly onStopping: () => void;
  /** Nothing is under way that somebody may still be answered with. */
  readonly isIdle: () => boolean;
}

export class HttpServer implements Service {
  readonly name = 'HTTP server';
  readonly #listener: HttpListener;
  readonly #options: ServerOptions;
  #port = 0;

  private constructor(listener: HttpListener, options: ServerOptions) {
    this.#listener = listener;
    this.#options = options;
  }

  /** @throws Error where `uws` is asked for and its binding does not load */
  static async make(routes: readonly ServerRoute[], options: ServerOptions): Promise<HttpServer> {
    return new HttpServer(await makeListener(routes, options), options);
  }

  get stopTimeoutMs(): number {
    return this.#options.graceMs + 1000;
  }

  get kind(): HttpServerKind {
    return this.#listener.kind;
  }

  /** Requests that are not answered yet. */
  get open(): number {
    return this.#listener.open;
  }

  get connections(): Connections {
    return this.#options.connections;
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#port;
  }

  /** Listens. @throws where the port can't be had. */
  async start(): Promise<void> {
    this.#port = await this.#listener.listen(this.#options.host, this.#options.port);
  }

  /** Accepts no more connections, answers what has arrived, then closes every connection. */
  async stop(): Promise<void> {
    this.#listener.stopListening();
    this.#options.onStopping();
    const deadline = performance.now() + this.#options.graceMs;
    do await pause(DRAIN_POLL_MS);
    while ((this.open > 0 || !this.#options.isIdle()) && performance.now() < deadline);
    this.#listener.close();
  }

  health(): Health {
    return HEALTHY;
  }
}

/** Each implementation is loaded where it serves. */
async function makeListener(
  routes: readonly ServerRoute[],
  options: ListenerOptions & Pick<ServerOptions, 'kind'>,
): Promise<HttpListener> {
  if (options.kind !== 'node') {
    try {
      const { UwsListener } = await import('./uwsListener.js');
      return new UwsListener(routes, options);
    } catch (error) {
      if (options.kind === 'uws') throw error;
    }
  }
  const { NodeListener } = await import('./nodeListener.js');
  return new NodeListener(routes, options);
}
