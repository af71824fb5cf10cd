/** The HTTP server on uWebSockets.js. Only this file imports uWebSockets.js. */
import * as binding from 'uWebSockets.js';
import {
  App,
  type HttpRequest,
  type HttpResponse,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js';
import { ClientCounts } from './clientCounts.js';
import type { Connections } from './connections.js';
import { newRequestId } from './correlationIds.js';
import { Exchange, type RequestHead } from './exchange.js';
import { BodyMemory, IncomingBody, proceed } from './incomingBody.js';
import { KernelConnections } from './kernelConnections.js';
import {
  ACCEPTED_ENCODING,
  beginHandling,
  type HttpListener,
  isBearer,
  isContinue,
  joined,
  type ListenerOptions,
  REPEATED,
  type ServerRoute,
} from './listener.js';

/**
 * Maximum number of HEAD requests of a client per second. If a client sends more, its connection is closed.
 * Answers to HEAD have no body, so no pending write reveals that the client does not read them.
 */
const HEADS_PER_SECOND = 100;
/**
 * The only value of Expect that uWebSockets.js answers with status 100 by itself, before it passes on the
 * request. It ignores all other values.
 */
const ANSWERED_EXPECTATION = '100-continue';
/** Undocumented key of the binding that suppresses its Server header. */
const NO_SERVER_HEADER = '999999990007';

export class UwsListener implements HttpListener {
  readonly kind = 'uws';
  readonly connections: Connections;
  readonly #app;
  readonly #kernelConnections: KernelConnections;
  readonly #headers = new HeaderReader();
  readonly #bodies = new BodyMemory();
  readonly #heads = new ClientCounts(1, () => performance.now());
  #socket: us_listen_socket | undefined;
  #port = 0;
  #open = 0;

  constructor(
    routes: readonly ServerRoute[],
    private readonly options: ListenerOptions,
  ) {
    this.connections = options.connections;
    this.#kernelConnections = new KernelConnections(this.connections, () => this.#port);
    (binding as { _cfg?: (key: string) => void })._cfg?.(NO_SERVER_HEADER);
    this.#app = App();
    this.#app.filter(this.#connectionChanged);
    for (const route of routes) {
      const isExact = !/[:*]/.test(route.pattern);
      const accept = (raw: HttpResponse, request: HttpRequest): void =>
        this.#accept(route, isExact, raw, request);
      this.#app[route.method](route.pattern, accept);
      if (route.method === 'get')
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
          reject(
            new Error(
              `Cannot listen on port ${port} of ${host}: it is in use, or not available to this process`,
            ),
          );
          return;
        }
        this.#socket = socket;
        this.#port = us_socket_local_port(socket);
        resolve(this.#port);
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

  readonly #connectionChanged = (raw: HttpResponse, change: number): void => {
    if (change < 0) this.connections.remove();
    else this.#admit(raw);
  };

  #admit(raw: HttpResponse): void {
    const refusal = this.connections.add() ?? (this.#isOfTooMany(raw) ? 'address' : undefined);
    if (refusal === undefined) return;
    this.connections.refused[refusal]++;
    raw.close();
  }

  #isOfTooMany(raw: HttpResponse): boolean {
    return this.#kernelConnections.isOver(Buffer.from(raw.getRemoteAddressAsText()).toString('latin1'));
  }

  #accept(
    route: ServerRoute,
    isExact: boolean,
    raw: HttpResponse,
    request: HttpRequest,
    method: string = route.method,
  ): void {
    // Values that the route determines are not read from the request, because each read crosses into C++.
    const head = this.#headers.headOf(
      request,
      method === 'any' ? request.getMethod() : method,
      isExact ? route.pattern : request.getUrl(),
      route.hasQuery ? (request.getQuery() ?? '') : '',
    );
    // The length of the request is ambiguous, and the only safe reaction is to close the connection.
    if (head === undefined) {
      raw.close();
      return;
    }
    const { expectation } = this.#headers;
    if (expectation !== '' && !isContinue(expectation)) {
      raw.writeStatus('417 Expectation Failed');
      raw.endWithoutBody(0, true);
      return;
    }
    const exchange = new Exchange(raw, head, newRequestId(), route.operation, this.#ended);
    if (
      head.method === 'head' &&
      this.#heads.count(this.options.clientOf(exchange)).count > HEADS_PER_SECOND
    ) {
      this.connections.refused.pipeline++;
      raw.close();
      return;
    }
    this.#open++;
    const incoming = new IncomingBody(exchange, route.bodyLimit, this.#bodies);
    exchange.incoming = incoming;
    raw.onAborted(() => exchange.abort());
    raw.onData((chunk, isLast) => {
      if (incoming.admits(chunk.byteLength) && incoming.add(Buffer.from(chunk), isLast))
        proceed(exchange, incoming, this.options);
    });
    if (expectation !== '' && expectation !== ANSWERED_EXPECTATION)
      incoming.askToContinue = () => writeContinue(raw);
    // The API key is checked now, before later chunks of a body arrive.
    if (route.bodyLimit > 0) beginHandling(route, exchange, this.options);
    else incoming.take(() => route.handle(exchange));
  }

  readonly #ended = (): void => {
    this.#open--;
  };
}

/**
 * Writes `100 Continue`. uWebSockets.js does not support interim responses. It takes this line for the only
 * status line, so the real status line is written before the name of the first header.
 */
function writeContinue(raw: HttpResponse): void {
  raw.cork(() => raw.writeStatus('100 Continue\r\n'));
  const writeHeader = raw.writeHeader.bind(raw);
  let status = '200 OK';
  raw.writeStatus = (text) => {
    status = text.toString();
    return raw;
  };
  raw.writeHeader = (name, value) => {
    raw.writeHeader = writeHeader;
    return writeHeader(`HTTP/1.1 ${status}\r\n${name.toString()}`, value);
  };
}

/**
 * Reads the headers of a request in one pass. One object serves all requests, because a closure for each
 * request, with a variable for each header, would be garbage to collect for every spin.
 */
class HeaderReader {
  #apiKey = '';
  #interfaceVersion = '';
  #accept = '';
  #forwardedFor = '';
  #idempotencyKey: string | undefined;
  #acceptEncoding = '';
  #cookie = '';
  #csrfToken = '';
  #requestOrigin = '';
  #contentEncoding = '';
  #hasBearer = false;
  /** Value of Expect; empty if the header was not sent. */
  expectation = '';
  #lengths = 0;
  #hosts = 0;
  #encodings = 0;
  #isFramed = true;

  /**
   * Returns what is needed of a request before its body. Returns undefined for a request with two lengths,
   * with both a length and chunks, or with a transfer coding other than chunked. Servers interpret such
   * requests differently, and a proxy in front may see another request begin in the middle of this request
   * (RFC 9112, 6.3).
   */
  headOf(request: HttpRequest, method: string, path: string, query: string): RequestHead | undefined {
    this.#forget();
    request.forEach(this.#note);
    const isAmbiguous = this.#lengths > 1 || this.#hosts > 1 || this.#encodings + this.#lengths > 1;
    if (isAmbiguous || !this.#isFramed) return undefined;
    return {
      method,
      path,
      query,
      apiKey: this.#apiKey,
      interfaceVersion: this.#interfaceVersion,
      accept: this.#accept,
      forwardedFor: this.#forwardedFor,
      acceptEncoding: this.#acceptEncoding,
      cookie: this.#cookie,
      csrfToken: this.#csrfToken,
      requestOrigin: this.#requestOrigin,
      contentEncoding: this.#contentEncoding,
      hasBearer: this.#hasBearer,
      idempotencyKey: this.#idempotencyKey,
    };
  }

  #forget(): void {
    this.#apiKey = '';
    this.#interfaceVersion = '';
    this.#accept = '';
    this.#forwardedFor = '';
    this.#idempotencyKey = undefined;
    this.#acceptEncoding = '';
    this.#cookie = '';
    this.#csrfToken = '';
    this.#requestOrigin = '';
    this.#contentEncoding = '';
    this.#hasBearer = false;
    this.expectation = '';
    this.#lengths = 0;
    this.#hosts = 0;
    this.#encodings = 0;
    this.#isFramed = true;
  }

  readonly #note = (name: string, value: string): void => {
    // Names are compared by length first, because most headers are not used and text comparisons are the main
    // cost.
    switch (name.length) {
      case 9:
        if (name === 'x-api-key') this.#apiKey = joined(this.#apiKey, value);
        break;
      case 14:
        if (name === 'content-length') this.#lengths++;
        break;
      case 4:
        if (name === 'host') this.#hosts++;
        break;
      case 17:
        if (name === 'transfer-encoding') {
          this.#encodings++;
          this.#isFramed = value.toLowerCase() === ACCEPTED_ENCODING;
        } else if (name === 'interface_version')
          this.#interfaceVersion = joined(this.#interfaceVersion, value);
        break;
      case 6:
        if (name === 'accept') this.#accept = joined(this.#accept, value);
        else if (name === 'cookie') this.#cookie = this.#cookie === '' ? value : `${this.#cookie}; ${value}`;
        else if (name === 'origin') this.#requestOrigin = joined(this.#requestOrigin, value);
        else if (name === 'expect') this.expectation = joined(this.expectation, value);
        break;
      case 12:
        if (name === 'x-csrf-token') this.#csrfToken = joined(this.#csrfToken, value);
        break;
      case 13:
        if (name === 'authorization') this.#hasBearer ||= isBearer(value);
        break;
      case 16:
        if (name === 'content-encoding') this.#contentEncoding = joined(this.#contentEncoding, value);
        break;
      case 15:
        if (name === 'accept-encoding') this.#acceptEncoding = joined(this.#acceptEncoding, value);
        else if (name === 'x-forwarded-for') this.#forwardedFor = joined(this.#forwardedFor, value);
        else if (name === 'idempotency-key') {
          this.#idempotencyKey =
            this.#idempotencyKey === undefined ? value : this.#idempotencyKey + REPEATED + value;
        }
        break;
    }
  };
}
