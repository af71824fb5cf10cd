/**
 * Sends HTTP requests to untrusted servers. The size limit covers all bytes of the connection: head, interim
 * responses (1xx), chunk extensions and body. Beyond the limit the connection is closed, so that a server
 * can't consume much memory or time, whatever it sends.
 */
import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';

/** Thrown when the server has sent more than the limit. */
export class AnswerTooLargeError extends Error {
  constructor(bytesMax: number) {
    super(`the response has more than ${bytesMax} bytes`);
  }
}

/**
 * Creates a connector that limits the received bytes.
 * @param bytesMax maximum number of bytes that the server may send over a connection after the handshake,
 * including TLS records
 */
export function boundedConnector(
  options: buildConnector.BuildOptions,
  bytesMax: number,
): buildConnector.connector {
  const connect = buildConnector(options);
  return (to, callback) =>
    connect(to, (error, socket) => {
      if (error !== null) return callback(error, null);
      const { bytesRead: handshake } = socket as Socket;
      // This listener is registered before the HTTP client's own listener, which reads the data.
      socket.on('readable', () => {
        if (socket.bytesRead - handshake > bytesMax) socket.destroy(new AnswerTooLargeError(bytesMax));
      });
      return callback(null, socket);
    });
}

export interface BoundedRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /**
   * Maximum size of the response's body in bytes. The head and framing may have {@link OVERHEAD_MAX} bytes in
   * addition.
   */
  readonly bytesMax: number;
  /** Timeout for the whole request, in milliseconds. */
  readonly withinMs: number;
}

export interface BoundedAnswer {
  readonly status: number;
  /** Returns the value of a header field of the response. Undefined if the field was not sent. */
  header(name: string): string | undefined;
  readonly body: Buffer;
}

const OVERHEAD_MAX = 65_536;

/**
 * Sends one request over a connection of its own. Redirects are not followed.
 * @throws Error if no complete response arrives in time
 */
export async function boundedRequest(
  address: string,
  { method = 'GET', headers = {}, body, bytesMax, withinMs }: BoundedRequest,
): Promise<BoundedAnswer> {
  const url = new URL(address);
  const signal = AbortSignal.timeout(withinMs);
  const connect = boundedConnector({ timeout: withinMs, autoSelectFamily: true }, bytesMax + OVERHEAD_MAX);
  const client = new Client(url.origin, { connect, headersTimeout: withinMs, bodyTimeout: withinMs });
  try {
    const path = url.pathname + url.search;
    const answer = await client.request({ method, path, headers, body: body ?? null, signal });
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of answer.body as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > bytesMax) throw new AnswerTooLargeError(bytesMax);
      parts.push(part);
    }
    const header = (name: string): string | undefined => {
      const value = answer.headers[name.toLowerCase()];
      return Array.isArray(value) ? value[0] : value;
    };
    return { status: answer.statusCode, header, body: Buffer.concat(parts) };
  } finally {
    client.destroy().catch(() => {});
  }
}
