/** What one connection of node:http has under way, and the bounds of it. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { siteNetwork } from '../../domain/trustedProxies.js';
import type { ConnectionRefusal, Connections } from './connections.js';

/** Requests of a connection that are not answered in full: node reads on while it answers. */
const REQUESTS_MAX = 16;
/** Bytes of answers that wait for the readers of one connection, of one client, and of all. */
const WAITING_BYTES_MAX = 1_048_576;
const CLIENT_WAITING_BYTES_MAX = 8_388_608;
const ALL_WAITING_BYTES_MAX = 67_108_864;
const SMALL_BYTES = 8192;
/** Of a head, which is not measured. */
const HEAD_BYTES = 512;
/** A connection on which answers wait is closed when nothing moves for so long. */
const STALLED_MS = 10_000;
/** A client that was refused has so long to read why. */
const REFUSED_MS = 2000;

/** Bytes of answers that wait for their readers on all connections, and on those of each client. */
export class WaitingBytes {
  readonly #byClient = new Map<string, number>();
  #bytes = 0;

  /** @param client undefined: the connections are those of many, such as a proxy's */
  hasRoom(client: string | undefined, bytes: number): boolean {
    const ofClient = client === undefined ? 0 : (this.#byClient.get(client) ?? 0);
    return this.#bytes + bytes <= ALL_WAITING_BYTES_MAX && ofClient + bytes <= CLIENT_WAITING_BYTES_MAX;
  }

  /** @param bytes below 0: they wait no longer */
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
  /** The client that a PROXY protocol header named; empty where there was none. */
  proxied = '';
  readonly #socket: Socket;
  readonly #all: WaitingBytes;
  readonly #client: string | undefined;
  readonly #refused: Record<ConnectionRefusal, number>;
  /** Requests that are not answered in full. */
  readonly #requests = new Set<IncomingMessage>();
  #waitingBytes = 0;
  #refusal: number | undefined;

  constructor(socket: Socket, all: WaitingBytes, connections: Connections) {
    this.#socket = socket;
    this.#all = all;
    this.#refused = connections.refused;
    this.address = socket.remoteAddress ?? '';
    this.#client = connections.isBounded(this.address) ? siteNetwork(this.address) : undefined;
  }

  /** Counts a request. @returns false: it was one too many, or nothing is read any more of the connection */
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

  /** Reads no further: answers what came before, then this, and closes. */
  refuse(status: number): void {
    if (this.#refusal !== undefined) return;
    this.#refusal = status;
    this.#endRefused();
  }

  /** Refuses a request that was read: in its turn, and no other behind it. */
  refuseRequest(response: ServerResponse, status: number): void {
    this.#refusal = status;
    response.writeHead(status, { Connection: 'close', 'Content-Length': 0 }).end();
    this.written();
  }

  /** What came whole is owed its own answer first: a client takes the first one for that of its first request. */
  #endRefused(): void {
    if (
      this.#refusal === undefined ||
      !this.#socket.writable ||
      [...this.#requests].some((request) => request.complete)
    )
      return;
    const status = this.#refusal;
    this.#socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
    setTimeout(() => this.#socket.destroy(), REFUSED_MS).unref();
  }

  /** Counts an answer's bytes until the system has them. @returns false: they are too many, and the connection is closed */
  hold(response: ServerResponse, bodyBytes: number): boolean {
    const bytes = bodyBytes + HEAD_BYTES;
    // One small answer has its place always: who reads is served whoever else does not.
    const isMore = this.#waitingBytes > 0;
    const isTooMuch = isMore && this.#waitingBytes + bytes > WAITING_BYTES_MAX;
    const isTooMuchInAll = (isMore || bytes > SMALL_BYTES) && !this.#all.hasRoom(this.#client, bytes);
    if (isTooMuch || isTooMuchInAll) return this.#close('unread');
    this.#waitingBytes += bytes;
    this.#all.add(this.#client, bytes);
    response.once('finish', () => {
      this.#waitingBytes -= bytes;
      this.#all.add(this.#client, -bytes);
      // Without requests node has set the time that a connection may be idle.
      if (this.#waitingBytes === 0 && this.#requests.size > 0) this.#socket.setTimeout(0);
    });
    return true;
  }

  /** An answer was written: where the system did not take it at once, its reader has to go on within a time. */
  written(): void {
    if (this.#socket.writableLength > 0) this.#socket.setTimeout(STALLED_MS);
  }

  /** The connection is closed: nothing waits any more. */
  release(): void {
    this.#all.add(this.#client, -this.#waitingBytes);
    this.#waitingBytes = 0;
  }

  #close(refusal: ConnectionRefusal): false {
    this.#refused[refusal]++;
    cut(this.#socket);
    return false;
  }
}

/** What node:http has its parser call for what it finds. */
const PARSER_CALLS: ReadonlySet<string> = new Set([
  'parserOnHeaders',
  'parserOnHeadersComplete',
  'parserOnBody',
  'parserOnMessageComplete',
]);

/**
 * Closes a connection, and looks at nothing more of it. Node's parser can't be stopped amid the 64 KB that were read at once, and
 * would call for each of 10,000 chunks or 2,000 requests in them; without those functions it passes them over. They come back before
 * the parser is given to another connection. Where a version of Node names them otherwise the connection is closed all the same.
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
