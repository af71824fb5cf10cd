/**
 * Tests request bodies that arrive in pieces: which bytes the service buffers, for which partner, and how
 * many.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import type { TestPartner } from '../../support/client.js';
import { plainRequest, portOf, postRequest, SPIN_PATH, spinRequest, Wire } from '../../support/load.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const MB = 1_048_576;
/** Body buffers that one partner may use: 4 MiB in buffers of 64 KiB. */
const BODIES_OF_A_PARTNER = 64;

const { stores } = world();
let service: ServerProcess;
let partner: TestPartner;
let gameId: number;
let port: number;
const wires: Wire[] = [];
const sockets: Socket[] = [];

beforeAll(async () => {
  service = await spawnService(environment(stores, { CELLS: '1', TRUST_PROXY: '1' }));
  partner = await service.client.newPartner();
  gameId = await service.client.newGame(partner.key, parSheet('classic-3-reel'));
  port = portOf(service.base!);
});
afterEach(() => {
  for (const wire of wires.splice(0)) wire.close();
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  await service.stop();
});

async function open(): Promise<Wire> {
  const wire = await Wire.open(port);
  wires.push(wire);
  return wire;
}

/** Opens a connection and discards the answers. */
async function openUnread(): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  sockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket.resume();
}

let strangers = 0;
/** Returns the header line of a new client address, which has no failed authentications yet. */
const stranger = (): string => `X-Forwarded-For: 2001:db8:${(++strangers).toString(16)}::1\r\n`;

const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const head = (path: string, key: string, lines = CHUNKED): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${key === '' ? '' : `X-API-Key: ${key}\r\n`}${lines}\r\n`;
const spinBody = (): string => JSON.stringify({ gameId, playerId: 'bodies', wagerUsd: 0.25 });
const codeOf = (text: string) => (JSON.parse(text) as { errorCode?: string }).errorCode;
const residentBytes = (): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) * 1024;

/** Waits until the service has read everything that was sent before this call. */
async function allRead(): Promise<void> {
  const wire = await open();
  for (let turn = 0; turn < 3; turn++) await wire.ask(plainRequest('GET', '/healthz', ''));
}

describe('requests without a valid key', () => {
  const paths = [SPIN_PATH, '/api/partner/v1/games', '/api/play/blackjack/deal', '/api/operator/v1/partners'];
  const keys = [
    ['without a key', '', 'KS-4001'],
    ['with a wrong key', 'ks_wrong', 'KS-4002'],
  ] as const;
  const cases = paths.flatMap((path) => keys.map((key) => [path, ...key] as const));

  test.each(cases)(
    'refuses a request without a valid key before its body ends, and closes the connection (%s %s)',
    async (path, _what, key, code) => {
      const framings = [`${CHUNKED}\r\n`, `${CHUNKED}\r\n1\r\n{\r\n`, 'Content-Length: 500\r\n\r\n{'];
      const answered = framings.map(async (rest) => {
        const wire = await open();
        const answer = await wire.ask(head(path, key, stranger()).slice(0, -2) + rest);
        await wire.ended;
        return [answer.status, codeOf(answer.text), answer.headers.get('connection')];
      });
      for (const answer of answered) expect(await answer).toEqual([401, code, 'close']);
    },
  );

  test('keeps the connection of a request without a valid key if its whole body arrives, in any pieces', async () => {
    const wire = await open();
    for (const key of ['', 'ks_wrong']) {
      const answer = wire.answer();
      await wire.send(head(SPIN_PATH, key, stranger() + CHUNKED));
      for (const letter of spinBody()) await wire.send(`1\r\n${letter}\r\n`);
      await wire.send('0\r\n\r\n');
      expect((await answer).status).toBe(401);
    }
    expect((await wire.ask(spinRequest(partner.key, spinBody()))).status).toBe(200);
  });

  test('uses no memory for the body of a request without a valid key, however many chunks it has', async () => {
    const chunks = Buffer.from('1\r\na\r\n'.repeat(80_000));
    /** @returns the largest memory of the process during the attack, in bytes */
    const attack = async (connections: number): Promise<number> => {
      const attackers = await Promise.all(
        Array.from({ length: connections }, async (_, place) => {
          const socket = await openUnread();
          const key = place % 2 === 0 ? '' : 'ks_wrong';
          socket.write(head('/api/partner/v1/games', key, stranger() + CHUNKED));
          socket.write(chunks);
          return socket;
        }),
      );
      let most = 0;
      await until(() => {
        most = Math.max(most, residentBytes());
        return attackers.every((socket) => socket.closed);
      }, 'all are closed');
      return most;
    };
    // The heap of a new process grows during its first work, so the first attack only warms up.
    const before = await attack(20);
    expect((await attack(100)) - before).toBeLessThan(48 * MB);
  });
});

describe('bodies of requests with a valid key', () => {
  test('keeps a chunked body in one buffer, however many chunks it has', async () => {
    const body = spinBody().padEnd(4000);
    const inChunks = [...body].map((letter) => `1\r\n${letter}\r\n`).join('');
    /** @returns the memory of the process while 200 bodies are unfinished, in bytes */
    const heldBy = async (chunks: string): Promise<number> => {
      const slow = await Promise.all(Array.from({ length: 200 }, open));
      const answers = slow.map((wire) => wire.answer());
      await Promise.all(slow.map((wire) => wire.send(head(SPIN_PATH, partner.key) + chunks)));
      await allRead();
      const held = residentBytes();
      await Promise.all(slow.map((wire) => wire.send('0\r\n\r\n')));
      for (const answer of answers) expect((await answer).status).toBe(200);
      return held;
    };
    // The heap of a new process grows during its first work, so the first bodies only warm up.
    await heldBy(`fa0\r\n${body}\r\n`);
    const before = await heldBy(`fa0\r\n${body}\r\n`);
    expect((await heldBy(inChunks)) - before).toBeLessThan(48 * MB);
  });

  test('answers KS-5002 to a partner with too many unfinished bodies, and still serves another partner', async () => {
    const other = await service.client.newPartner();
    const path = '/api/partner/v1/games';
    const begin = async (key: string): Promise<Wire> => {
      const wire = await open();
      await wire.send(head(path, key, 'Content-Length: 2\r\n'));
      await wire.send('{');
      await allRead();
      return wire;
    };
    const finish = async (wire: Wire): Promise<readonly [number, string | undefined]> => {
      const { status, text } = await wire.ask('}');
      return [status, codeOf(text)];
    };
    const held = await Promise.all(Array.from({ length: BODIES_OF_A_PARTNER }, () => begin(partner.key)));
    expect(await finish(await begin(partner.key))).toEqual([503, 'KS-5002']);
    expect(await finish(await begin(other.key))).toEqual([400, 'KS-4102']);
    // A body that arrives in one piece needs no buffer.
    expect((await (await open()).ask(postRequest(path, partner.key, '{}'))).status).toBe(400);
    expect(await finish(held[0]!)).toEqual([400, 'KS-4102']);
    held[1]!.reset();
    await until(async () => (await finish(await begin(partner.key)))[0] === 400, 'there is room again');
  });
});

test('closes the connection of an ignored body that arrives in too many pieces', async () => {
  for (const [path, key] of [
    ['/nowhere', ''],
    [SPIN_PATH, partner.key],
  ] as const) {
    const wire = await open();
    await wire.send(head(path, key));
    const chunks = '1\r\na\r\n'.repeat(2000);
    for (let sent = 0; sent < 100 && !wire.hasEnded; sent++) await wire.send(chunks);
    await wire.ended;
  }
});
