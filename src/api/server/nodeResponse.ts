/** Writes an answer on node:http. The number of bytes that wait for a slow reader is bounded. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RawResponse } from './exchange.js';
import { cut, type NodeConnection } from './nodeConnection.js';

/**
 * Number of bytes that are read after an answer that ends an upload. Closing a connection with unread bytes
 * would reset it, and the client could lose the answer.
 */
const LINGER_BYTES_MAX = 16_777_216;
const LINGER_MS = 2000;
/** Minimum number of bytes that a chunk counts as, because every chunk costs processing time. */
const PIECE_BYTES = 1024;

export class NodeResponse implements RawResponse {
  #status = 200;
  readonly #headers: string[] = [];

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly connection: NodeConnection,
  ) {}

  cork(callback: () => void): void {
    callback();
  }

  writeStatus(status: string): void {
    this.#status = Number.parseInt(status, 10);
  }

  /** @param value may contain further header lines, as the replies write them */
  writeHeader(name: string, value: string | Uint8Array): void {
    const text = typeof value === 'string' ? value : Buffer.from(value).toString('latin1');
    const [first, ...lines] = text.split('\r\n');
    this.#headers.push(name, first!);
    for (const line of lines) {
      const colon = line.indexOf(': ');
      this.#headers.push(line.slice(0, colon), line.slice(colon + 2));
    }
  }

  end(body: string | Uint8Array, closeConnection = false): void {
    if (this.response.headersSent) {
      this.response.end(body);
      return;
    }
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
    this.#headers.push('Content-Length', String(bytes));
    // The body is copied, because the replies' buffer is only valid until this call returns, and a slow
    // reader takes longer.
    this.#send(closeConnection, typeof body === 'string' ? body : Buffer.from(body));
  }

  endWithoutBody(_length?: number, closeConnection = false): void {
    this.#send(closeConnection, '');
  }

  tryEnd(body: string | Uint8Array): [ok: boolean, isDone: boolean] {
    this.end(body);
    return [true, true];
  }

  /**
   * Registers the handler for a streamed body. Other bodies wait in Node's buffers, which the connection
   * limits.
   */
  onWritable(handler: (written: number) => boolean): void {
    this.response.once('drain', () => handler(0));
  }

  write(part: string): boolean {
    if (!this.response.headersSent) this.response.writeHead(this.#status, this.#headers);
    return this.response.write(part);
  }

  close(): void {
    cut(this.request.socket);
  }

  /**
   * Does nothing, because body data is already discarded while the answer is made and for a short time after
   * that.
   */
  pause(): void {}

  getRemoteAddressAsText(): ArrayBuffer {
    return bytesOf(this.connection.address);
  }

  getProxiedRemoteAddressAsText(): ArrayBuffer {
    return bytesOf(this.connection.proxied);
  }

  #send(closeConnection: boolean, body: string | Buffer): void {
    if (!this.connection.hold(this.response, body.length)) return;
    if (closeConnection) this.#headers.push('Connection', 'close');
    this.response.writeHead(this.#status, this.#headers);
    if (!closeConnection || this.request.complete) this.response.end(body);
    else this.#linger(body);
    this.connection.written();
  }

  /**
   * Sends the answer, whose length tells the client where it ends. Continues to read for a short time before
   * the connection is closed.
   */
  #linger(body: string | Buffer): void {
    const { socket } = this.request;
    if (body.length > 0) this.response.write(body);
    else this.response.flushHeaders();
    let passedBy = 0;
    this.request.on('data', (chunk: Buffer) => {
      passedBy += Math.max(PIECE_BYTES, chunk.byteLength);
      if (passedBy > LINGER_BYTES_MAX) socket.destroy();
    });
    this.request.on('end', () => this.response.end());
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
}

const bytesOf = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer as ArrayBuffer;
