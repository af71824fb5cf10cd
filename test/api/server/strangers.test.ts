/**
 * Tests what an unauthenticated client may occupy in the service: connections, unread answers, endless
 * requests.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Connections } from '../../../src/api/server/connections.js';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { HTTP_SERVER } from '../../support/httpServer.js';
import { plainRequest, portOf, Wire } from '../../support/load.js';
import { mainOf, ROOT } from '../../support/root.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { constants, environment, spawnService, startService } from '../../support/service.js';
import { storeClock } from '../../support/storeClock.js';
import { until } from '../../support/wait.js';

const OPENAPI = plainRequest('GET', '/api/partner/v1/openapi.json', '');
const HEALTH = plainRequest('GET', '/healthz', '');

const { stores } = world();
const sockets: Socket[] = [];
/** An address of this machine other than loopback, because loopback has no connection limit of its own. */
const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === 'IPv4' && !each.internal)?.address;

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Opens a connection whose answers are never read. */
async function open(port: number, host = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host });
  sockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

const openAll = (count: number, port: number): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => open(port)));

async function connections(metricsUrl: string): Promise<{ open: number; refused: Record<string, number> }> {
  const text = await (await fetch(metricsUrl)).text();
  const refused = [...text.matchAll(/^spindle_http_connections_refused_total\{reason="(\w+)"\} (\d+)/gm)];
  return {
    open: Number(/^spindle_http_connections (\d+)/m.exec(text)?.[1]),
    refused: Object.fromEntries(refused.map(([, reason, count]) => [reason, Number(count)])),
  };
}

const residentMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** Returns the processor time in seconds that a process has used. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

describe('unread answers', () => {
  let service: ServerProcess;
  beforeAll(async () => {
    service = await spawnService(environment(stores, { TRUST_PROXY: '1' }));
  });
  afterAll(() => service.stop());

  test.each([
    // Each request names another client, as a proxy does, so no rate limit applies.
    [
      'GET openapi.json',
      (place: number) => OPENAPI.replace('X-API-Key: ', `X-Forwarded-For: 2001:db8:${place}::1`),
    ],
    ['GET of no route', () => plainRequest('GET', '/', '')],
    ['HEAD', () => plainRequest('HEAD', '/healthz', '')],
  ])(
    'bounds its memory and closes the connections when %s is sent thousands of times and no answer is read',
    async (_what, request) => {
      const port = portOf(service.base!);
      const beforeMb = residentMb(service.pid);
      const clients = await openAll(20, port);
      const requests = Array.from({ length: 600 }, (_, place) => request(place)).join('');
      const ended = Promise.all(
        clients.map((client) => once(client.resume().pause(), 'close').catch(() => {})),
      );
      for (const client of clients) client.write(requests);
      const largestMb = await largest(() => residentMb(service.pid), 1000);
      expect(largestMb - beforeMb).toBeLessThan(64);
      for (const client of clients) client.resume();
      await ended;
      expect((await (await Wire.open(port)).ask(HEALTH)).status).toBe(200);
    },
  );

  test('sends each answer completely to a client that reads slowly', async () => {
    const client = await open(portOf(service.base!));
    let bytes = 0;
    client.pause();
    client.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    client.write(OPENAPI.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    await until(() => client.readableLength > 0 || client.bytesRead > 0, 'the answer has begun');
    client.resume();
    await once(client, 'close');
    expect(bytes).toBeGreaterThan(50_000);
  });
});

async function largest(measure: () => number, forMs: number): Promise<number> {
  let most = 0;
  for (const endMs = performance.now() + forMs; performance.now() < endMs; ) {
    most = Math.max(most, measure());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return most;
}

describe('limits of connections', () => {
  test('closes new connections beyond CONNECTIONS_MAX, and still serves the open ones', async () => {
    const service = await startService(stores, { CONNECTIONS_MAX: '20' });
    try {
      const port = portOf(service.base);
      const metrics = `http://127.0.0.1:${service.running.metricsPort}/metrics`;
      const wire = await Wire.open(port);
      const clients = await openAll(30, port);
      await until(() => clients.filter((client) => client.resume().closed).length === 11, '11 are closed');
      expect((await wire.ask(HEALTH)).status).toBe(200);
      expect(await connections(metrics)).toMatchObject({ open: 20, refused: { total: 11 } });
      for (const client of clients) client.destroy();
      await until(async () => (await connections(metrics)).open === 1, 'they are closed');
      wire.close();
    } finally {
      await service.stop();
    }
  });

  test('refuses connections of one address beyond CONNECTIONS_PER_ADDRESS_MAX, except proxies and loopback', () => {
    const limits = { total: 100, perAddress: 5, isProxy: (address: string) => address === '203.0.113.9' };
    const counted = new Connections(limits);
    const refusals = (address: string, count: number) =>
      Array.from({ length: count }, () => counted.addOf(address)).filter((refusal) => refusal === 'address')
        .length;
    expect(refusals('203.0.113.1', 8)).toBe(3);
    expect(refusals('203.0.113.9', 8)).toBe(0);
    expect(refusals('127.0.0.1', 8)).toBe(0);
    expect(refusals('::ffff:203.0.113.2', 6)).toBe(1);
    expect(refusals('2001:db8:1:2::1', 3) + refusals('2001:db8:1:2:ffff::2', 3), 'one /64').toBe(1);
    expect(refusals('2001:db8:1:3::1', 5), 'another /64').toBe(0);
    for (let i = 0; i < 8; i++) counted.removeOf('203.0.113.1');
    expect(refusals('203.0.113.1', 5)).toBe(0);
  });

  test('limits the connections of one IPv6 /48 to half of CONNECTIONS_MAX', () => {
    const counted = new Connections({ total: 100, perAddress: 5, isProxy: () => false });
    const refused = Array.from({ length: 60 }, (_, place) => counted.addOf(`2001:db8:1:${place}::1`));
    expect(refused.filter((refusal) => refusal === 'address')).toHaveLength(10);
    expect(counted.addOf('2001:db8:2::1')).toBeUndefined();
    for (let place = 0; place < 60; place++) counted.removeOf(`2001:db8:1:${place}::1`);
    expect(counted.addOf('2001:db8:1:99::1')).toBeUndefined();
  });

  test.runIf(ownAddress !== undefined)(
    'closes connections beyond the limit for an address on both HTTP servers, and still serves loopback',
    async () => {
      const env = { HOST: '0.0.0.0', CONNECTIONS_PER_ADDRESS_MAX: '5' };
      const service = await startService(stores, env);
      try {
        const port = portOf(service.base);
        const metrics = `http://127.0.0.1:${service.running.metricsPort}/metrics`;
        await until(async () => {
          const client = await open(port, ownAddress);
          client.resume();
          return (await connections(metrics)).refused.address! > 0;
        }, 'a connection is refused');
        expect((await connections(metrics)).open).toBeLessThan(30);
        expect((await (await Wire.open(port)).ask(HEALTH)).status).toBe(200);
      } finally {
        await service.stop();
      }
    },
  );

  test('closes connections beyond the file descriptor limit of the process, without a busy loop', async () => {
    const env = environment(stores, { ROLES: 'http' });
    const child = spawn('sh', ['-c', `ulimit -n 330; exec "$0" "$@"`, process.execPath, mainOf(ROOT)], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    const place = (line: string) => new RegExp(`^ *${line} +(http\\S+)\\s`, 'm').exec(text)?.[1];
    await until(() => place('metrics') !== undefined, 'the service is ready');
    const port = portOf(place('API')!);
    const wire = await Wire.open(port);
    const clients = await openAll(400, port);
    await until(() => clients.filter((client) => client.resume().closed).length >= 300, 'most are closed');
    const before = cpuSeconds(child.pid!);
    const startMs = performance.now();
    for (let i = 0; i < 10; i++) {
      expect((await wire.ask(HEALTH)).status).toBe(200);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const busy = (cpuSeconds(child.pid!) - before) / ((performance.now() - startMs) / 1000);
    expect(busy).toBeLessThan(0.5);
    wire.close();
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
});

test.runIf(HTTP_SERVER === 'node')('closes an idle connection after the idle timeout', async () => {
  const service = await startService(stores, constants({ idleTimeoutS: 1 }));
  try {
    const wire = await Wire.open(portOf(service.base));
    expect((await wire.ask(HEALTH)).status).toBe(200);
    const startMs = performance.now();
    await wire.ended;
    expect(performance.now() - startMs).toBeGreaterThan(900);
  } finally {
    await service.stop();
  }
});

describe('limits of requests by a client without a key', () => {
  test('serves openapi.json 60 times a minute to one client, without limiting another client', async () => {
    const service = await startService(stores, { TRUST_PROXY: '127.0.0.0/8' });
    try {
      const wire = await Wire.open(portOf(service.base));
      const from = (address: string) =>
        wire.ask(OPENAPI.replace('X-API-Key: ', `X-Forwarded-For: ${address}`));
      const statuses: number[] = [];
      // A new minute may begin during the loop and allow another 60 requests.
      for (let i = 0; i < 130; i++) statuses.push((await from(`2001:db8::${i.toString(16)}`)).status);
      expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(10);
      expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(60);
      const last = await from('2001:db8::1');
      if (last.status === 429) {
        expect(JSON.parse(last.text)).toMatchObject({ errorCode: 'KS-4292' });
        expect(last.headers.get('ratelimit-policy')).toBe('"openapi";q=60;w=60');
      }
      expect((await from('2001:db8:0:1::1')).status).toBe(200);
      wire.close();
    } finally {
      await service.stop();
    }
  });

  test.each([
    ['X-Forwarded-For', ''],
    ['the PROXY protocol', '\r\n\r\n\0\r\nQUIT\n'],
  ])(
    'counts failures of a client named by %s in a window of its own, by IPv6 /64',
    async (_what, signature) => {
      const service = await startService(stores, {
        TRUST_PROXY: '127.0.0.0/8',
        ...constants({ authFailureLimit: 2 }),
      });
      try {
        const fail = async (network: number, host: number): Promise<number> => {
          const wire = await Wire.open(portOf(service.base));
          const address = `2001:db8:${signature.length}:${network}::${host}`;
          const header = Buffer.alloc(52);
          header.write(signature, 'latin1');
          header.writeUInt8(0x21, 12);
          header.writeUInt8(0x21, 13);
          header.writeUInt16BE(36, 14);
          const words = [0x2001, 0xdb8, signature.length, network, 0, 0, 0, host];
          for (const [at, word] of words.entries()) header.writeUInt16BE(word, 16 + 2 * at);
          const forwarded = signature === '' ? `X-Forwarded-For: 1.2.3.4, ${address}\r\n` : '';
          const request = `GET /api/partner/v1/games HTTP/1.1\r\nHost: x\r\n${forwarded}X-API-Key: ks_wrong\r\n\r\n`;
          const bytes = Buffer.from(request);
          const { status } = await wire.ask(signature === '' ? bytes : Buffer.concat([header, bytes]));
          wire.close();
          return status;
        };
        const seen: number[] = [];
        // The loop sends more requests than two windows allow, in case a new minute begins.
        for (let host = 1; host <= 7; host++) seen.push(await fail(1, host));
        expect(seen.slice(0, 2)).toEqual([401, 401]);
        expect(seen.filter((status) => status === 429).length).toBeGreaterThanOrEqual(3);
        expect(await fail(2, 1), 'another /64').toBe(401);
      } finally {
        await service.stop();
      }
    },
  );

  test('answers a request without a valid key with nothing but the error, and without reading its body', async () => {
    // This client has its own address, so its failures don't slow down other clients.
    const service = await startService(stores, { TRUST_PROXY: '1' });
    const headers = { 'X-Forwarded-For': '198.51.100.7' };
    try {
      const body = `{"prizes":[${'1,'.repeat(32_000)}1]}`;
      for (const path of ['/api/operator/v1/partners/1/raffles', '/api/partner/v1/webhooks'])
        for (const [key, errorCode] of [
          [undefined, 'KS-4001'],
          ['ks_wrong', 'KS-4002'],
        ] as const) {
          const answer = await service.request('POST', path, { ...(key && { key }), body, headers });
          expect(answer).toMatchObject({ status: 401, body: { errorCode } });
          expect(answer.body).not.toHaveProperty('details');
        }
      // The answer also hides the server software and the number of requests.
      const numbers: number[] = [];
      for (let i = 0; i < 20; i++) {
        const told = (await service.request('GET', '/healthz')).headers;
        expect([...told.keys()].filter((name) => /server|uwebsockets|powered/.test(name))).toEqual([]);
        numbers.push(Number.parseInt(told.get('x-request-id')!.split('-')[1]!, 16));
      }
      // 20 random numbers of 48 bits are in ascending order only once in 10^18 times.
      expect(numbers.toSorted((a, b) => a - b)).not.toEqual(numbers);
      expect(new Set(numbers).size).toBe(20);
    } finally {
      await service.stop();
    }
  });

  test('delays the answers to a client that guesses operator keys, but never those to a valid key', async () => {
    const service = await startService(stores);
    try {
      const ask = async (key: string): Promise<[status: number, ms: number]> => {
        const startMs = performance.now();
        const { status } = await service.request('GET', '/api/operator/v1/partners', { key });
        return [status, performance.now() - startMs];
      };
      // A new minute resets the number of failed authentications, so the test starts with enough time left in
      // the minute.
      const clock = storeClock(stores.redisUrl);
      await clock.room(15);
      clock.close();
      for (let i = 0; i < 8; i++) expect((await ask('an-operator-key-that-is-wrong'))[0]).toBe(401);
      const wrong = ask('an-operator-key-that-is-wrong');
      const rights: number[] = [];
      // The fastest of three requests counts, because any single one may be delayed on a busy machine.
      for (let i = 0; i < 3; i++) {
        const [status, ms] = await ask(OPERATOR_KEY);
        expect(status).toBe(200);
        rights.push(ms);
      }
      const [status, ms] = await wrong;
      expect(status).toBe(401);
      expect(ms).toBeGreaterThan(1500);
      expect(Math.min(...rights)).toBeLessThan(ms);
    } finally {
      await service.stop();
    }
  });
});

test("serves the metrics only with the metrics token, and never on the API's address", async () => {
  const token = 'a-token-of-the-monitoring';
  const service = await startService(stores, { HOST: '0.0.0.0', METRICS_TOKEN: token });
  try {
    const url = `http://127.0.0.1:${service.running.metricsPort}`;
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    expect((await fetch(`${url}/metrics`, { headers: { Authorization: 'Bearer another' } })).status).toBe(
      401,
    );
    for (const scheme of ['Bearer', 'bearer'])
      expect(
        (await fetch(`${url}/metrics`, { headers: { Authorization: `${scheme} ${token}` } })).status,
      ).toBe(200);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    if (ownAddress !== undefined)
      await expect(fetch(`http://${ownAddress}:${service.running.metricsPort}/healthz`)).rejects.toThrow();
  } finally {
    await service.stop();
  }
});
