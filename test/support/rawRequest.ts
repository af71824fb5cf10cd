/** Sends requests as bytes, in forms that no client library sends. */
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/**
 * Sends a request on a new connection with `Connection: close`, and reads until the server closes the
 * connection.
 */
export function raw(
  base: string,
  lines: readonly string[],
  body: string | readonly string[] = '',
  localAddress = '127.0.0.1',
): Promise<RawAnswer> {
  const { hostname, port, host } = new URL(base);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), localAddress });
    let text = '';
    socket.setEncoding('latin1');
    socket.on('error', reject);
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('close', () => {
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) {
        reject(new Error(`The connection was closed after ${JSON.stringify(text)}`));
        return;
      }
      const [statusLine = '', ...fields] = text.slice(0, end).split('\r\n');
      resolve({
        status: Number(statusLine.split(' ')[1]),
        headers: new Map(
          fields.map((field) => [
            field.slice(0, field.indexOf(':')).toLowerCase(),
            field.slice(field.indexOf(':') + 1).trim(),
          ]),
        ),
        body: text.slice(end + 4),
      });
    });
    const [first, ...rest] = lines;
    socket.write([first, `Host: ${host}`, 'Connection: close', ...rest, '', ''].join('\r\n'));
    for (const chunk of typeof body === 'string' ? [body] : body) socket.write(chunk);
  });
}

/** Encodes a body in chunks (RFC 9112, 7.1). */
export const chunked = (body: string, size = 1000): string[] => [
  ...Array.from({ length: Math.ceil(body.length / size) }, (_, i) => {
    const part = body.slice(i * size, (i + 1) * size);
    return `${part.length.toString(16)}\r\n${part}\r\n`;
  }),
  '0\r\n\r\n',
];
