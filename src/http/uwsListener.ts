/** The HTTP server on uWebSockets.js, whose only importer this file is. */

import {
  App,
  type HttpRequest,
  type HttpResponse,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js';
import { Exchange } from './exchange.js';
import {
  ACCEPTED_ENCODING,
  DRAIN_BYTES_MAX,
  EMPTY_BODY,
  type HttpListener,
  type ListenerOptions,
  type ServerRoute,
} from './listener.js';
import { newRequestId } from './requestIds.js';

export class UwsListener implements HttpListener {
  readonly kind = 'uws';
  readonly #app = App();
  #socket: us_listen_socket | undefined;
  #open = 0;

  readonly #options: ListenerOptions;

  constructor(routes: readonly ServerRoute[], options: ListenerOptions) {
    this.#options = options;
    for (const route of routes) {
      const isExact = !/[:*]/.test(route.pattern);
      const accept = (raw: HttpResponse, request: HttpRequest): void =>
        this.#accept(route, isExact, raw, request);
      this.#app[route.method](route.pattern, accept);
      if (route.answersHead)
        this.#app.head(route.pattern, (raw, request) => this.#accept(route, isExact, raw, request, 'head'));
    }
  }

  get open(): number {
    return this.#open;
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#app.listen(host, port, (socket: us_listen_socket | false) => {
        if (socket === false) {
          reject(new Error(`Port ${port} of ${host} is in use or can't be listened on`));
          return;
        }
        this.#socket = socket;
        resolve(us_socket_local_port(socket));
      });
    });
  }

  stopListening(): void {
    if (this.#socket !== undefined) us_listen_socket_close(this.#socket);
    this.#socket = undefined;
  }

  close(): void {
    this.#app.close();
  }

  #accept(
    route: ServerRoute,
    isExact: boolean,
    raw: HttpResponse,
    request: HttpRequest,
    method: string = route.method,
  ): void {
    const fields = fieldsOf(request);
    // There is no answer that is safe but to hang up.
    if (!fields.isPlainlyFramed) {
      raw.close();
      return;
    }
    this.#open++;
    const exchange = new Exchange(
      raw,
      {
        // What the route says already isn't asked of the request: each question crosses into C++.
        method: method === 'any' ? request.getMethod() : method,
        path: isExact ? route.pattern : request.getUrl(),
        query: route.hasQuery ? (request.getQuery() ?? '') : '',
        apiKey: fields.apiKey,
        interfaceVersion: fields.interfaceVersion,
        accept: fields.accept,
      },
      newRequestId(),
      route.operation,
      this.#settled,
    );
    raw.onAborted(() => exchange.abort());
    this.#read(route, raw, exchange);
  }

  /** Hands the request on once its body is whole, over its limit, or not to be read. */
  #read(route: ServerRoute, raw: HttpResponse, exchange: Exchange): void {
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
      if (route.bodyLimit === 0) exchange.body = EMPTY_BODY;
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

interface Fields {
  readonly apiKey: string;
  readonly interfaceVersion: string;
  readonly accept: string;
  /**
   * False for two lengths, a length and chunks, or a coding that isn't chunks: different servers read them differently, and a proxy
   * in front may see another request begin in the middle of this one (RFC 9112, 6.3).
   */
  readonly isPlainlyFramed: boolean;
}

function fieldsOf(request: HttpRequest): Fields {
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
        // Combined as RFC 9110, 5.3 says: two keys are no key.
        if (name === 'x-api-key') apiKey = apiKey === '' ? value : `${apiKey}, ${value}`;
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
          isFramed = value.toLowerCase() === ACCEPTED_ENCODING;
        } else if (name === 'interface_version') interfaceVersion = value;
        break;
      case 6:
        if (name === 'accept') accept = value;
        break;
    }
  });
  const isPlainlyFramed = lengths <= 1 && hosts <= 1 && encodings + lengths <= 1 && isFramed;
  return { apiKey, interfaceVersion, accept, isPlainlyFramed };
}
