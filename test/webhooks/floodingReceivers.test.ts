/**
 * Tests servers that stream data without end. The connection must be cut after about 64 KB and the attempt
 * must get an outcome, whatever is streamed.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { boundedRequest } from '../../src/platform/runtime/boundedRequest.js';
import { nameServers } from '../../src/webhooks/allowedAddresses.js';
import { Sender } from '../../src/webhooks/sender.js';

/**
 * Maximum number of bytes that a server can send until the cut. They are more than the service reads, because
 * the socket buffers of both sides also hold data, which may be more than one chunk.
 */
const SENT_MAX = 16 * 1024 * 1024;
/**
 * Time limit of an attempt, in ms. It is longer than the test, so only the limit of bytes can end an attempt.
 */
const NEVER_MS = 600_000;

const FLOODS: readonly (readonly [name: string, begin: string, piece: string])[] = [
  ['interim answers', '', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(500)],
  ['header lines', 'HTTP/1.1 200 OK\r\n', 'X-Filler: 0123456789\r\n'.repeat(500)],
  [
    'a chunk extension',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1',
    ';a=0123456789'.repeat(1000),
  ],
  [
    'a trailer',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n',
    'X-Filler: 0123456789\r\n'.repeat(500),
  ],
  ['a body', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', `2000\r\n${'x'.repeat(0x2000)}\r\n`],
];

/**
 * Starts a server that answers each connection with a first text, and then repeats a second text as fast as
 * the client reads.
 */
async function floodingServer(
  begin: string,
  piece: string,
): Promise<{ url: string; sent: () => number; ended: Promise<unknown> }> {
  let bytes = 0;
  let closed = (): void => {};
  const ended = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {});
    socket.on('close', () => {
      bytes = socket.bytesWritten;
      closed();
    });
    socket.once('data', () => {
      socket.write(begin);
      const stream = (): void => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on('drain', stream);
      stream();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://localhost:${(server.address() as AddressInfo).port}/`, sent: () => bytes, ended };
}

test.each(FLOODS)('cuts off a webhook receiver that streams %s', async (name, begin, piece) => {
  const { url, sent, ended } = await floodingServer(begin, piece);
  const sender = new Sender({ brand: 'Acme', timeLimitMs: NEVER_MS, resolve: nameServers() });
  const due = {
    deliveryId: 'd',
    webhookId: 1,
    event: 'spin.large_win',
    url,
    body: '{}',
    secret: 'whsec_c2VjcmV0',
    attempts: 0,
    environment: 'sandbox',
    apiVersion: 'v1',
    previous: undefined,
  } as unknown as Parameters<Sender['send']>[0];
  const outcome = await sender.send(due).outcome;
  await ended;
  expect(sent()).toBeLessThan(SENT_MAX);
  // A response with an overlong body counts as a delivery, but a response that never becomes complete does
  // not.
  expect(outcome?.isDelivered).toBe(name === 'a body');
});

test.each(FLOODS)(
  'cuts off a witness, or a log read by a witness, that streams %s',
  async (_, begin, piece) => {
    const { url, sent, ended } = await floodingServer(begin, piece);
    await expect(boundedRequest(url, { bytesMax: 1000, withinMs: NEVER_MS })).rejects.toThrow();
    await ended;
    expect(sent()).toBeLessThan(SENT_MAX);
  },
);
