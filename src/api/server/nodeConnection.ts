/** Tracks the open requests and unsent answers of one node:http connection, and limits them. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { siteNetwork } from '../../domain/trustedProxies.js';
import type { ConnectionRefusal, Connections } from './connections.js';

/**
 * Maximum number of requests on a connection without a complete answer. The limit is needed because Node
 * keeps reading requests while it answers.
 */
const REQUESTS_MAX = 16;
/** Maximum bytes of answers that wait to be read, on one connection, for one client and in total. */
const WAITING_BYTES_MAX = 1_048_576;
const CLIENT_WAITING_BYTES_MAX = 8_388_608;
const ALL_WAITING_BYTES_MAX = 67_108_864;
const SMALL_BYTES = 8192;
/** Assumed size of an answer's head, which is not measured. */
const HEAD_BYTES = 512;
const JSON_TYPE = 'application/json';
/** Time without progress after which a connection with waiting answers is closed, in ms. */
const STALLED_MS = 10_000;
/** Time that a refused client gets to read the refusal before the connection is closed, in ms. */
const REFUSED_MS = 2000;

/** Counts the bytes of answers that wait to be read, on all connections and by client. */
export class WaitingBytes {
  readonly #byClient = new Map<string, number>();
  #bytes = 0;

  /** @param client undefined: the connection carries many clients, such as the connection of a proxy */
  hasRoom(client: string | undefined, bytes: number): boolean {
    const ofClient = client === undefined ? 0 : (this.#byClient.get(client) ?? 0);
    return this.#bytes + bytes <= ALL_WAITING_BYTES_MAX && ofClient + bytes <= CLIENT_WAITING_BYTES_MAX;
  }

  /** @param bytes number of bytes that start to wait; negative if bytes were sent */
  add(client: string | undefined, bytes: number): void {
    this.#bytes += bytes;
    if (client === undefined) return;
    const ofClient = (this.#byClient.get(client) ?? 0) + bytes;
    if (ofClient === 0) this.#byClient.delete(client);
    else this.#byClient.set(client, ofClient);
  }
}

export class NodeConnection {
  readonly address: string;
  /** Client address from a PROXY protocol header; empty if there was no such header. */
  proxied = '';
  readonly #client: string | undefined;
  readonly #refused: Record<ConnectionRefusal, number>;
  /** Requests that are not answered completely. */
  readonly #requests = new Set<IncomingMessage>();
  #waitingBytes = 0;
  #refusal: { readonly status: number; readonly body: string } | undefined;
  /** True if the refusal is the answer to a request, so that it must not be sent again. */
  #isRefusalSent = false;

  constructor(
    private readonly socket: Socket,
    private readonly all: WaitingBytes,
    connections: Connections,
  ) {
    this.#refused = connections.refused;
    this.address = socket.remoteAddress ?? '';
    this.#client = connections.isBounded(this.address) ? siteNetwork(this.address) : undefined;
  }

  /**
   * Counts a request. Returns false if there are too many requests, or if the connection is no longer read.
   */
  begin(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#refusal !== undefined) return false;
    this.#requests.add(request);
    if (this.#requests.size > REQUESTS_MAX) return this.#close('pipeline');
    response.once('finish', () => {
      this.#requests.delete(request);
      this.#endRefused();
    });
    return true;
  }

  /**
   * Stops reading from the connection, answers the requests that arrived before, then sends this status and
   * closes the connection.
   * @param body JSON text; empty: no body
   */
  refuse(status: number, body = ''): void {
    if (this.#refusal !== undefined) return;
    this.#refusal = { status, body };
    this.#endRefused();
  }

  /**
   * Refuses a complete request after the earlier requests are answered. No request after the refused one is
   * answered.
   */
  refuseRequest(response: ServerResponse, status: number, body = ''): void {
    this.#refusal = { status, body };
    this.#isRefusalSent = true;
    const type = body === '' ? {} : { 'Content-Type': JSON_TYPE };
    response
      .writeHead(status, { Connection: 'close', ...type, 'Content-Length': Buffer.byteLength(body) })
      .end(body);
    this.written();
  }

  /**
   * Requests that arrived completely are answered before the refusal, because a client takes the first answer
   * for the answer to its first request.
   */
  #endRefused(): void {
    if (
      this.#refusal === undefined ||
      this.#isRefusalSent ||
      !this.socket.writable ||
      [...this.#requests].some((request) => request.complete)
    )
      return;
    const { status, body } = this.#refusal;
    const type = body === '' ? '' : `Content-Type: ${JSON_TYPE}\r\n`;
    this.socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n${type}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    setTimeout(() => this.socket.destroy(), REFUSED_MS).unref();
  }

  /**
   * Counts the bytes of an answer until the operating system has accepted them. Returns false, and closes the
   * connection, if too many bytes are waiting.
   */
  hold(response: ServerResponse, bodyBytes: number): boolean {
    const bytes = bodyBytes + HEAD_BYTES;
    // One small answer is always accepted, so that a client that reads is served even if other clients do not
    // read.
    const isMore = this.#waitingBytes > 0;
    const isTooMuch = isMore && this.#waitingBytes + bytes > WAITING_BYTES_MAX;
    const isTooMuchInAll = (isMore || bytes > SMALL_BYTES) && !this.all.hasRoom(this.#client, bytes);
    if (isTooMuch || isTooMuchInAll) return this.#close('unread');
    this.#waitingBytes += bytes;
    this.all.add(this.#client, bytes);
    response.once('finish', () => {
      this.#waitingBytes -= bytes;
      this.all.add(this.#client, -bytes);
      // If no requests are open, Node has already set the idle timeout of the connection.
      if (this.#waitingBytes === 0 && this.#requests.size > 0) this.socket.setTimeout(0);
    });
    return true;
  }

  /**
   * Called after an answer was written. If the operating system did not accept the whole answer, the client
   * must continue to read within a time limit.
   */
  written(): void {
    if (this.socket.writableLength > 0) this.socket.setTimeout(STALLED_MS);
  }

  /** Releases the counted bytes after the connection has closed. */
  release(): void {
    this.all.add(this.#client, -this.#waitingBytes);
    this.#waitingBytes = 0;
  }

  #close(refusal: ConnectionRefusal): false {
    this.#refused[refusal]++;
    cut(this.socket);
    return false;
  }
}

/** Names of the functions that node:http registers as callbacks of its parser. */
const PARSER_CALLS: ReadonlySet<string> = new Set([
  'parserOnHeaders',
  'parserOnHeadersComplete',
  'parserOnBody',
  'parserOnMessageComplete',
]);

/**
 * Closes a connection and ignores the data that was already read. Node's parser cannot be stopped in the
 * middle of the 64 KB that were read at once. It would call its callbacks for each of up to 10,000 chunks or
 * 2,000 requests in them. Without these callbacks it skips them. The callbacks are restored before the parser
 * is given to another connection. If a version of Node uses other names, the connection is still closed.
 */
export function cut(socket: Socket): void {
  const { parser } = socket as Socket & { readonly parser?: Record<string, unknown> | null };
  if (parser && !socket.closed) {
    const calls = Object.entries(parser).filter(
      ([, call]) => typeof call === 'function' && PARSER_CALLS.has(call.name),
    );
    for (const [place] of calls) parser[place] = undefined;
    socket.prependOnceListener('close', () => Object.assign(parser, Object.fromEntries(calls)));
  }
  socket.destroy();
}
