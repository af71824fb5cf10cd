/** Sends the requests of tests with the reference model, on connections that can be cut. */
import { ConnectionEnded, portOf, Wire } from '../support/load.js';
import type { Answer } from './exchange.js';

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly body?: string;
}

function bytesOf({ method, path, key, body }: HttpRequest): Buffer {
  const content = Buffer.from(body ?? '');
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    ...(key === undefined ? [] : [`X-API-Key: ${key}`]),
    ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${content.length}`]),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), content]);
}

/**
 * Encodes a part of a path as percent-encoded UTF-8, including dots because some software interprets `..`.
 */
export const pathPart = (text: string): string =>
  Buffer.from(text).reduce(
    (path, byte) =>
      path +
      (/[0-9A-Za-z]/.test(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).padStart(2, '0')}`),
    '',
  );

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Resolves after a number of microseconds, which is too short a time for a timer. The wait determines the
 * moment at which a connection is cut, because no event marks that moment.
 */
export async function afterMicroseconds(us: number): Promise<void> {
  const end = performance.now() + us / 1000;
  do await nextTurn();
  while (performance.now() < end);
}

/**
 * One front end of the service. Each request has a connection of its own because an idle connection may be
 * closed.
 */
export class Front {
  readonly #port: number;

  constructor(base: string) {
    this.#port = portOf(base);
  }

  async ask(request: HttpRequest): Promise<Answer> {
    const wire = await Wire.open(this.#port);
    try {
      return await wire.ask(bytesOf(request));
    } finally {
      wire.close();
    }
  }

  async askInPart(request: HttpRequest, bytes: number): Promise<void> {
    const wire = await Wire.open(this.#port);
    const whole = bytesOf(request);
    await wire.send(whole.subarray(0, Math.min(bytes, whole.length - 1)));
    wire.reset();
  }

  /**
   * Sends a request and cuts the connection after a delay. Returns undefined if the response had not arrived
   * before the cut.
   */
  async askAndCut(
    request: HttpRequest,
    afterUs: number,
    how: 'reset' | 'close',
  ): Promise<Answer | undefined> {
    const wire = await Wire.open(this.#port);
    const answer = wire.answer().catch((error: unknown) => {
      if (!(error instanceof ConnectionEnded)) throw error;
      return undefined;
    });
    await wire.send(bytesOf(request));
    await afterMicroseconds(afterUs);
    if (how === 'reset') wire.reset();
    else wire.close();
    return answer;
  }
}
