/**
 * A partner's webhook receiver: an HTTP server that stores the received requests and responds as a test
 * determines.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { Client } from './client.js';

export interface Received {
  readonly path: string;
  readonly headers: Record<string, string>;
  /** The bytes of the body. */
  readonly bytes: Buffer;
  readonly event: {
    readonly id: string;
    readonly event: string;
    readonly createdAt: string;
    readonly partnerId: number;
    /** True for a test event. */
    readonly test?: true;
    readonly data: Record<string, unknown>;
  };
  readonly atMs: number;
}

export interface Receiver {
  readonly port: number;
  readonly received: readonly Received[];
  /** The number of connections accepted so far, and the number of open ones. */
  readonly connections: { made: number; open: number };
  /** Returns a URL of the receiver that sandbox partners may register. */
  url(path?: string): string;
  close(): Promise<void>;
}

export type Reply = (request: Received, response: ServerResponse, incoming: IncomingMessage) => void;

const accept: Reply = (_request, response) => void response.writeHead(204).end();

export async function startReceiver(reply: Reply = accept, port = 0): Promise<Receiver> {
  const received: Received[] = [];
  const connections = { made: 0, open: 0 };
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const bytes = Buffer.concat(chunks);
      const request: Received = {
        path: incoming.url ?? '',
        headers: incoming.headers as Record<string, string>,
        bytes,
        event: JSON.parse(bytes.toString('utf8')),
        atMs: performance.now(),
      };
      received.push(request);
      reply(request, response, incoming);
    });
  });
  server.on('connection', (socket) => {
    connections.made++;
    connections.open++;
    socket.on('close', () => connections.open--);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    received,
    connections,
    url: (path = '/') => `http://localhost:${address.port}${path}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export interface Registered {
  readonly id: number;
  readonly secret: string;
}

/** Registers a webhook. */
export async function register(
  client: Client,
  key: string,
  url: string,
  events: readonly string[] = ['spin.large_win'],
): Promise<Registered> {
  const answer = await client.partner<{ id: number; secret: string }>('POST', '/webhooks', key, {
    url,
    events,
  });
  if (answer.status !== 201) throw new Error(`No webhook: ${answer.text}`);
  return answer.body;
}

/**
 * Whether both signatures of a delivery match the secret, by an external library and by the contract's own
 * rule (docs/contract.md §13.3).
 */
export function isSigned({ headers, bytes }: Received, secret: string): boolean {
  const digest = createHmac('sha256', secret).update(bytes).digest();
  const [scheme, hex = ''] = (headers['x-spindle-signature'] ?? '').split('=');
  const given = Buffer.from(hex, 'hex');
  if (scheme !== 'sha256' || given.length !== digest.length || !timingSafeEqual(given, digest)) return false;
  try {
    new Webhook(secret).verify(bytes, headers);
    return true;
  } catch {
    return false;
  }
}
