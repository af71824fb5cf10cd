/**
 * The HTTP server on node:http: for Node versions that uWebSockets.js has no binding for, and for whoever wants node's parser
 * (llhttp). docs/production.md lists what differs.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Exchange, type RawResponse } from './exchange.js';
import {
  ACCEPTED_ENCODING,
  DRAIN_BYTES_MAX,
  EMPTY_BODY,
  type HttpListener,
  type ListenerOptions,
  type ServerRoute,
} from './listener.js';
import { newRequestId } from './requestIds.js';
import { Router } from './router.js';

/** Larger heads are answered with 431. */
const HEAD_BYTES_MAX = 16_384;
/** A head must be whole, and a request, within these. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** Longer than the 60 s that balancers keep idle connections for. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const CONNECTIONS_CHECKED_EVERY_MS = 2000;
/** As many as uWebSockets.js takes. */
const HEADERS_MAX = 100;
/**
 * An answer that ends an upload is followed by so much more reading: a close with bytes unread resets the connection, and the
 * client may lose the answer.
 */
const LINGER_BYTES_MAX = 16_777_216;
const LINGER_MS = 2000;

export class NodeListener implements HttpListener {
  readonly kind = 'node';
  readonly #server: Server;
  readonly #router: Router;
  readonly #options: ListenerOptions;
  #open = 0;

  constructor(routes: readonly ServerRoute[], options: ListenerOptions) {
    this.#router = new Router(routes);
    this.#options = options;
    this.#server = createServer(
      {
        maxHeaderSize: HEAD_BYTES_MAX,
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        connectionsCheckingInterval: CONNECTIONS_CHECKED_EVERY_MS,
        insecureHTTPParser: false,
        requireHostHeader: true,
        noDelay: true,
      },
      (request, response) => this.#accept(request, response),
    );
    // Node would drop the headers beyond its limit in silence; the bytes of a head have theirs.
    this.#server.maxHeadersCount = 0;
    this.#server.on('clientError', (error, socket) => refuseMalformed(error, socket as Socket));
    // CONNECT and Upgrade have no handler: node closes the connection of the one and serves the other as a request.
  }

  get open(): number {
    return this.#open;
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const onError = (): void =>
        reject(new Error(`Port ${port} of ${host} is in use or can't be listened on`));
      this.#server.once('error', onError);
      // Node 20 does not know reusePort and ignores it: there one process has the port to itself.
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

  #accept(request: IncomingMessage, response: ServerResponse): void {
    // The parser goes on with what it has read, also behind a request that was refused by closing.
    if (request.socket.destroyed) return;
    const { rawHeaders } = request;
    if (rawHeaders.length > 2 * HEADERS_MAX) {
      refuse(request.socket, 431);
      return;
    }
    let apiKey = '';
    let interfaceVersion = '';
    let accept = '';
    let hosts = 0;
    let lengths = 0;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const value = rawHeaders[i + 1]!;
      switch (rawHeaders[i]!.toLowerCase()) {
        case 'x-api-key':
          // Combined as RFC 9110, 5.3 says: two keys are no key.
          apiKey = apiKey === '' ? value : `${apiKey}, ${value}`;
          break;
        case 'interface_version':
          interfaceVersion = value;
          break;
        case 'accept':
          accept = value;
          break;
        case 'host':
          hosts++;
          break;
        case 'content-length':
          lengths++;
          break;
      }
    }
    const encoding = request.headers['transfer-encoding'];
    // The framing is ambiguous (RFC 9112, 6.3): a proxy in front may see another request begin inside this one.
    if (
      hosts > 1 ||
      lengths > 1 ||
      (encoding !== undefined && encoding.toLowerCase() !== ACCEPTED_ENCODING)
    ) {
      request.socket.destroy();
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
      new NodeResponse(request, response),
      { method, path, query, apiKey, interfaceVersion, accept },
      newRequestId(),
      route.operation,
      this.#settled,
    );
    response.on('close', () => {
      if (!response.writableFinished) exchange.abort();
    });
    this.#read(route, request, exchange);
  }

  /** Hands the request on once its body is whole, over its limit, or not to be read. */
  #read(route: ServerRoute, request: IncomingMessage, exchange: Exchange): void {
    let chunks: Buffer[] = [];
    let received = 0;
    request.on('data', (chunk: Buffer) => {
      if (exchange.closesConnection) return;
      received += chunk.byteLength;
      if (received <= route.bodyLimit) {
        chunks.push(chunk);
        return;
      }
      chunks = [];
      if (received <= DRAIN_BYTES_MAX) return;
      exchange.closesConnection = true;
      this.#handle(route, exchange, undefined);
    });
    request.on('end', () => {
      if (exchange.closesConnection) return;
      const isWhole = received <= route.bodyLimit;
      this.#handle(
        route,
        exchange,
        isWhole ? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)) : undefined,
      );
    });
    // The response's close tells of it.
    request.on('error', () => {});
  }

  #handle(route: ServerRoute, exchange: Exchange, body: Buffer | undefined): void {
    exchange.body = route.bodyLimit === 0 ? EMPTY_BODY : body;
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

/** Path and query of a request target, in origin or absolute form (RFC 9112, 3.2). */
function targetOf(target: string): [path: string, query: string] {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? '';
  const local = target.slice(origin.length);
  const mark = local.indexOf('?');
  const path = mark < 0 ? local : local.slice(0, mark);
  return [path === '' ? '/' : path, mark < 0 ? '' : local.slice(mark + 1)];
}

/** What the parser refuses: answered, where that is still possible, and closed. */
function refuseMalformed(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') refuse(socket, 431);
  else refuse(socket, error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400);
}

function refuse(socket: Socket, status: number): void {
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** Collects what the replies write and sends it in one piece. */
class NodeResponse implements RawResponse {
  #status = 200;
  readonly #headers: string[] = [];
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
  }

  cork(callback: () => void): void {
    callback();
  }

  writeStatus(status: string): void {
    this.#status = Number.parseInt(status, 10);
  }

  /** @param value may hold further header lines, as the replies write them */
  writeHeader(name: string, value: string): void {
    const [first, ...lines] = value.split('\r\n');
    this.#headers.push(name, first!);
    for (const line of lines) {
      const colon = line.indexOf(': ');
      this.#headers.push(line.slice(0, colon), line.slice(colon + 2));
    }
  }

  end(body: string | Uint8Array, closeConnection = false): void {
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
    this.#headers.push('Content-Length', String(bytes));
    // A copy: the replies' buffers hold until this call returns, and a slow reader takes longer.
    this.#send(closeConnection, typeof body === 'string' ? body : Buffer.from(body));
  }

  endWithoutBody(_length?: number, closeConnection = false): void {
    this.#send(closeConnection, '');
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return new TextEncoder().encode(this.#request.socket.remoteAddress ?? '').buffer as ArrayBuffer;
  }

  #send(closeConnection: boolean, body: string | Buffer): void {
    if (closeConnection) this.#headers.push('Connection', 'close');
    this.#response.writeHead(this.#status, this.#headers);
    if (!closeConnection || this.#request.complete) this.#response.end(body);
    else this.#linger(body);
  }

  /** Sends the answer, which its length ends for the client, and reads on for a while before the connection is closed. */
  #linger(body: string | Buffer): void {
    const { socket } = this.#request;
    if (body.length > 0) this.#response.write(body);
    else this.#response.flushHeaders();
    let passedBy = 0;
    this.#request.on('data', (chunk: Buffer) => {
      passedBy += chunk.byteLength;
      if (passedBy > LINGER_BYTES_MAX) socket.destroy();
    });
    this.#request.on('end', () => this.#response.end());
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
}
