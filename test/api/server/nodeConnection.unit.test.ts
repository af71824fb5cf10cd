/** Tests a node:http connection that is cut while the server still parses bytes that it has already read. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { cut } from '../../../src/api/server/nodeConnection.js';

const HEAD = 'POST / HTTP/1.1\r\nHost: x\r\n';
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Sends all bytes at once and returns the answer after the connection is closed. */
async function sent(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk.toString();
  });
  socket.on('error', () => {});
  socket.write(text);
  await once(socket, 'close');
  return answer;
}

const lengthOf = async (request: IncomingMessage): Promise<number> => {
  let bytes = 0;
  for await (const piece of request) bytes += (piece as Buffer).length;
  return bytes;
};

test('delivers no further chunk of a body after its connection was cut', async () => {
  let pieces = 0;
  const server = createServer((request) => {
    request.on('error', () => {});
    request.push = () => {
      pieces++;
      cut(request.socket);
      return false;
    };
  });
  const port = await listening(server);
  for (let place = 1; place <= 20; place++) {
    await sent(port, CHUNKED + '1\r\na\r\n'.repeat(10_000));
    expect(pieces).toBe(place);
  }
});

test('reads no further pipelined request after the connection was cut', async () => {
  let requests = 0;
  const port = await listening(
    createServer((request) => {
      requests++;
      cut(request.socket);
    }),
  );
  await sent(port, `${HEAD}Content-Length: 0\r\n\r\n`.repeat(1000));
  expect(requests).toBe(1);
});

test('leaves the HTTP parser usable for later connections after a connection was cut', async () => {
  const port = await listening(
    createServer((request, response) => {
      request.on('error', () => {});
      if (request.url === '/cut') {
        request.on('data', () => cut(request.socket));
        return;
      }
      void lengthOf(request).then((bytes) => response.setHeader('Connection', 'close').end(`read ${bytes}`));
    }),
  );
  const chunks = '1\r\na\r\n'.repeat(5000);
  for (let turn = 0; turn < 50; turn++) {
    await sent(port, CHUNKED.replace('/', '/cut') + chunks);
    expect(await sent(port, `${CHUNKED + chunks}0\r\n\r\n`)).toMatch(/read 5000/);
  }
});
