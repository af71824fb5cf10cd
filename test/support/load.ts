/** HTTP/1.1 over bare sockets, for load and for requests that `fetch` can't send. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export const SPIN_PATH = '/api/partner/v1/spin';

export interface WireAnswer {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  /** Status line and headers exactly as received. */
  readonly head: string;
  readonly text: string;
}

/** The connection ended before the response was complete. */
export class ConnectionEnded extends Error {}

interface Waiting {
  readonly isHead: boolean;
  resolve(answer: WireAnswer): void;
  reject(error: Error): void;
}

/** One connection. Responses arrive in the order of their requests. */
export class Wire {
  readonly #waiting: Waiting[] = [];
  #received: Buffer = Buffer.alloc(0);
  #hasEnded = false;
  /** Resolves once the server has ended or reset the connection. */
  readonly ended: Promise<void>;

  private constructor(private readonly socket: Socket) {
    socket.setNoDelay(true);
    this.ended = new Promise((resolve) => {
      const end = (): void => {
        this.#hasEnded = true;
        for (const waiting of this.#waiting.splice(0)) {
          waiting.reject(new ConnectionEnded(`The connection ended after ${this.#received.length} bytes`));
        }
        resolve();
      };
      socket.on('error', end);
      socket.on('end', end);
      socket.on('close', end);
    });
    socket.on('data', (chunk: Buffer) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
      this.#read();
    });
  }

  /** @param from the source address in the loopback network, by default 127.0.0.1 */
  static async open(port: number, from = '127.0.0.1'): Promise<Wire> {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true });
    await once(socket, 'connect');
    return new Wire(socket);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Received bytes that belong to no expected response. */
  get unread(): string {
    return this.#received.toString('latin1');
  }

  /** Resolves once the operating system has accepted the bytes, or the connection can't accept any. */
  send(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /**
   * Reads the next response.
   * @throws ConnectionEnded
   */
  answer(isHead = false): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ isHead, resolve, reject });
      this.#read();
      if (this.#hasEnded && this.#waiting.length > 0) {
        this.#waiting.pop();
        reject(new ConnectionEnded('The connection has ended'));
      }
    });
  }

  async ask(bytes: string | Uint8Array, isHead = false): Promise<WireAnswer> {
    const answer = this.answer(isHead);
    await this.send(bytes);
    return answer;
  }

  /** Sends FIN. Bytes that the server sends afterwards can still be read. */
  finish(): void {
    this.socket.end();
  }

  /** Sends RST. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  close(): void {
    this.socket.destroy();
  }

  #read(): void {
    while (this.#waiting.length > 0) {
      const found = parse(this.#received, this.#waiting[0]!.isHead);
      if (found === undefined) return;
      this.#received = this.#received.subarray(found.length);
      this.#waiting.shift()!.resolve(found.answer);
    }
  }
}

function parse(bytes: Buffer, isHead: boolean): { answer: WireAnswer; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const [statusLine, ...lines] = head.split('\r\n');
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  const bodyAt = headEnd + 4;
  const length = isHead ? 0 : Number(headers.get('content-length') ?? 0);
  if (bytes.length < bodyAt + length) return undefined;
  const text = bytes.toString('utf8', bodyAt, bodyAt + length);
  return {
    answer: { status: Number(statusLine!.split(' ')[1]), headers, head, text },
    length: bodyAt + length,
  };
}

/** Returns the bytes of a POST /spin. Each additional header line ends with CRLF. */
export const spinRequest = (key: string, body: string | Uint8Array, more = ''): Buffer =>
  postRequest(SPIN_PATH, key, body, more);

/**
 * Returns the bytes of a request with a body.
 * @param more additional header lines, each ending with CRLF
 */
export function postRequest(path: string, key: string, body: string | Uint8Array, more = ''): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${key}\r\nContent-Length: ${bytes.length}\r\n${more}\r\n`,
      'latin1',
    ),
    bytes,
  ]);
}

/** Returns the bytes of a request without a body. */
export const plainRequest = (method: string, path: string, key: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${key}\r\n\r\n`;

export const portOf = (base: string): number => Number(new URL(base).port);

export interface Load {
  readonly port: number;
  readonly connections: number;
  /** Returns the bytes of the next request, or undefined to stop. */
  readonly next: () => Buffer | undefined;
  readonly onAnswer: (answer: WireAnswer, sent: Buffer) => void;
}

/**
 * Sends requests on each connection, one at a time, until there are no more.
 * @returns how many connections ended while they waited for a response
 */
export async function load({ port, connections, next, onAnswer }: Load): Promise<number> {
  const wires = await Promise.all(Array.from({ length: connections }, () => Wire.open(port)));
  let cut = 0;
  await Promise.all(
    wires.map(async (wire) => {
      try {
        for (let sent = next(); sent !== undefined; sent = next()) onAnswer(await wire.ask(sent), sent);
      } catch (error) {
        if (!(error instanceof ConnectionEnded)) throw error;
        cut++;
      } finally {
        wire.close();
      }
    }),
  );
  return cut;
}

/** Returns a function that returns the requests of a list in turn. */
export function each<T>(items: readonly T[], request: (item: T) => Buffer): () => Buffer | undefined {
  let at = 0;
  return () => (at < items.length ? request(items[at++]!) : undefined);
}

/**
 * Sends a request on a new connection. Returns undefined if no response arrived in time or the connection
 * ended.
 */
export async function askOnce(
  port: number,
  bytes: string | Uint8Array,
  timeoutMs: number,
): Promise<WireAnswer | undefined> {
  let wire: Wire | undefined;
  const timer = setTimeout(() => wire?.close(), timeoutMs);
  try {
    wire = await Wire.open(port);
    return await wire.ask(bytes);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    wire?.close();
  }
}
