/**
 * The HTTP server on node:http, for Node versions that uWebSockets.js has no binding for, and for operators
 * who prefer Node's parser (llhttp). docs/production.md lists the differences.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { ERRORS } from '../../domain/errors.js';
import type { Connections } from './connections.js';
import { newRequestId } from './correlationIds.js';
import { Exchange } from './exchange.js';
import { BodyMemory, IncomingBody, proceed } from './incomingBody.js';
import {
  ACCEPTED_ENCODING,
  beginHandling,
  EMPTY_BODY,
  HEAD_BYTES_MAX,
  type HttpListener,
  isBearer,
  isContinue,
  joined,
  type ListenerOptions,
  REPEATED,
  type ServerRoute,
} from './listener.js';
import { NodeConnection, WaitingBytes } from './nodeConnection.js';
import { NodeResponse } from './nodeResponse.js';
import { takeProxyHeader } from './proxyHeader.js';
import { errorText } from './reply.js';
import { Router } from './router.js';

/** Time limits for the head of a request, and for the whole request, in ms. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
const CONNECTIONS_CHECKED_EVERY_MS = 2000;
/** Maximum number of headers of a request, as in uWebSockets.js. */
const HEADERS_MAX = 100;

/** Answer to a head that is too large. uWebSockets.js answers such a head with a page of its own. */
const HEAD_TOO_LARGE = errorText(ERRORS.validationFailed, {
  details: [
    {
      path: '',
      message: `The request line and the headers must have at most ${HEAD_BYTES_MAX} bytes and ${HEADERS_MAX} headers`,
    },
  ],
});

export class NodeListener implements HttpListener {
  readonly kind = 'node';
  readonly #server: Server;
  readonly #router: Router;
  readonly connections: Connections;
  readonly #bySocket = new WeakMap<Socket, NodeConnection>();
  readonly #waiting = new WaitingBytes();
  readonly #bodies = new BodyMemory();
  #open = 0;

  constructor(
    routes: readonly ServerRoute[],
    private readonly options: ListenerOptions,
  ) {
    this.#router = new Router(routes);
    this.connections = options.connections;
    this.#server = createServer(
      {
        maxHeaderSize: HEAD_BYTES_MAX,
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        keepAliveTimeout: options.idleTimeoutSeconds * 1000,
        connectionsCheckingInterval: CONNECTIONS_CHECKED_EVERY_MS,
        insecureHTTPParser: false,
        requireHostHeader: true,
        noDelay: true,
      },
      (request, response) => this.#accept(request, response),
    );
    // Node silently drops headers beyond maxHeadersCount, so that limit is disabled. The size limit of the
    // head still applies.
    this.#server.maxHeadersCount = 0;
    // A client may close its sending side after its last request and still read the answers. Node's type
    // definitions lack this property.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    const [serve] = this.#server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
    this.#server.removeAllListeners('connection');
    this.#server.on('connection', (socket) => this.#admit(socket, serve!.bind(this.#server)));
    this.#server.on('clientError', (error, socket) => this.#refuse(error, socket as Socket));
    this.#server.on('checkContinue', (request, response) => this.#accept(request, response));
    this.#server.on('checkExpectation', (request, response) => this.#accept(request, response));
    // CONNECT and Upgrade have no handlers. Node closes the connection of a CONNECT request and serves an
    // Upgrade request as a normal request.
  }

  get open(): number {
    return this.#open;
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const onError = (): void =>
        reject(
          new Error(
            `Cannot listen on port ${port} of ${host}: it is in use, or not available to this process`,
          ),
        );
      this.#server.once('error', onError);
      // Node 20 ignores the option reusePort, so on Node 20 only one process can listen on the port.
      this.#server.listen({ host, port, reusePort: true }, () => {
        this.#server.off('error', onError);
        this.#server.on('error', () => {});
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  stopListening(): void {
    this.#server.close();
    this.#server.closeIdleConnections();
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #admit(socket: Socket, serve: (socket: Socket) => void): void {
    const connection = new NodeConnection(socket, this.#waiting, this.connections);
    this.#bySocket.set(socket, connection);
    const refusal = this.connections.addOf(connection.address);
    socket.once('close', () => {
      this.connections.removeOf(connection.address);
      connection.release();
    });
    if (refusal !== undefined) {
      this.connections.refused[refusal]++;
      socket.destroy();
    } else if (this.connections.limits.isProxy(connection.address)) {
      takeProxyHeader(socket, (address) => {
        connection.proxied = address;
        serve(socket);
      });
    } else serve(socket);
  }

  /** Answers a request that the parser refused, if that is still possible, and closes the connection. */
  #refuse({ code }: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (code === 'HPE_HEADER_OVERFLOW') connection.refuse(431, HEAD_TOO_LARGE);
    else connection.refuse(code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400);
  }

  #accept(request: IncomingMessage, response: ServerResponse): void {
    // The parser may deliver requests that it read before the connection was closed. They are ignored.
    if (request.socket.destroyed) return;
    const connection = this.#bySocket.get(request.socket)!;
    if (!connection.begin(request, response)) return;
    if (request.rawHeaders.length > 2 * HEADERS_MAX) {
      connection.refuseRequest(response, 431, HEAD_TOO_LARGE);
      return;
    }
    const fields = fieldsOf(request);
    if (!fields.isPlainlyFramed) {
      connection.refuseRequest(response, 400);
      return;
    }
    // HTTP/1.0 has no Expect header.
    const expectation = request.httpVersionMinor === 0 ? undefined : request.headers.expect;
    if (expectation !== undefined && !isContinue(expectation)) {
      connection.refuseRequest(response, 417);
      return;
    }
    const method = request.method!.toLowerCase();
    const [path, query] = targetOf(request.url!);
    const route = this.#router.find(method, path);
    if (route === undefined) {
      request.socket.destroy();
      return;
    }
    this.#open++;
    const exchange = new Exchange(
      new NodeResponse(request, response, connection),
      { method, path, query, ...fields },
      newRequestId(),
      route.operation,
      this.#ended,
    );
    response.on('close', () => {
      if (!response.writableFinished) exchange.abort();
    });
    const incoming = new IncomingBody(exchange, route.bodyLimit, this.#bodies);
    exchange.incoming = incoming;
    if (expectation !== undefined) incoming.askToContinue = () => response.writeContinue();
    this.#read(request, exchange, incoming);
    // The API key is checked now, before any part of the body is kept.
    if (route.bodyLimit > 0) beginHandling(route, exchange, this.options);
    else incoming.take(() => route.handle(exchange));
  }

  #read(request: IncomingMessage, exchange: Exchange, incoming: IncomingBody): void {
    const length = Number(request.headers['content-length']);
    let whole: Buffer = EMPTY_BODY;
    const add = (piece: Buffer, isLast: boolean): void => {
      if (incoming.add(piece, isLast)) proceed(exchange, incoming, this.options);
    };
    // The chunks are counted in `push`, because the parser calls it for all chunks of one read before the
    // first data event.
    const push = request.push.bind(request);
    request.push = (piece: Buffer | null): boolean =>
      (piece === null || incoming.admits(piece.length)) && push(piece);
    request.on('data', (piece: Buffer) => {
      // The end event of the request follows in the same turn of the event loop, so the chunk is still valid
      // then.
      if (piece.length === length) whole = piece;
      else add(piece, false);
    });
    request.on('end', () => add(whole, true));
    // A request error needs no handling here, because the close event of the response reports it.
    request.on('error', () => {});
  }

  readonly #ended = (): void => {
    this.#open--;
  };
}

interface Fields {
  readonly apiKey: string;
  readonly interfaceVersion: string;
  readonly accept: string;
  readonly forwardedFor: string;
  readonly acceptEncoding: string;
  readonly cookie: string;
  readonly csrfToken: string;
  readonly requestOrigin: string;
  readonly idempotencyKey: string | undefined;
  readonly contentEncoding: string;
  readonly hasBearer: boolean;
  /** False if a proxy in front may see the start of another request inside this request (RFC 9112, 6.3). */
  readonly isPlainlyFramed: boolean;
}

function fieldsOf({ rawHeaders, headers }: IncomingMessage): Fields {
  let apiKey = '';
  let interfaceVersion = '';
  let accept = '';
  let forwardedFor = '';
  let idempotencyKey: string | undefined;
  let acceptEncoding = '';
  let cookie = '';
  let csrfToken = '';
  let requestOrigin = '';
  let contentEncoding = '';
  let hasBearer = false;
  let hosts = 0;
  let lengths = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const value = rawHeaders[i + 1]!;
    switch (rawHeaders[i]!.toLowerCase()) {
      case 'x-api-key':
        apiKey = joined(apiKey, value);
        break;
      case 'interface_version':
        interfaceVersion = joined(interfaceVersion, value);
        break;
      case 'accept':
        accept = joined(accept, value);
        break;
      case 'x-forwarded-for':
        forwardedFor = joined(forwardedFor, value);
        break;
      case 'accept-encoding':
        acceptEncoding = joined(acceptEncoding, value);
        break;
      case 'idempotency-key':
        idempotencyKey = idempotencyKey === undefined ? value : idempotencyKey + REPEATED + value;
        break;
      case 'cookie':
        cookie = cookie === '' ? value : `${cookie}; ${value}`;
        break;
      case 'x-csrf-token':
        csrfToken = joined(csrfToken, value);
        break;
      case 'origin':
        requestOrigin = joined(requestOrigin, value);
        break;
      case 'authorization':
        hasBearer ||= isBearer(value);
        break;
      case 'content-encoding':
        contentEncoding = joined(contentEncoding, value);
        break;
      case 'host':
        hosts++;
        break;
      case 'content-length':
        lengths++;
        break;
    }
  }
  const encoding = headers['transfer-encoding'];
  const isPlainlyFramed =
    hosts <= 1 && lengths <= 1 && (encoding === undefined || encoding.toLowerCase() === ACCEPTED_ENCODING);
  return {
    apiKey,
    interfaceVersion,
    accept,
    forwardedFor,
    idempotencyKey,
    acceptEncoding,
    cookie,
    csrfToken,
    requestOrigin,
    contentEncoding,
    hasBearer,
    isPlainlyFramed,
  };
}

/** Returns the path and the query of a request target in origin or absolute form (RFC 9112, 3.2). */
function targetOf(target: string): [path: string, query: string] {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
  const local = target.slice(origin.length);
  const mark = local.indexOf('?');
  const path = mark < 0 ? local : local.slice(0, mark);
  // The asterisk form (OPTIONS *) names no resource.
  return [path.startsWith('/') ? path : '/', mark < 0 ? '' : local.slice(mark + 1)];
}
