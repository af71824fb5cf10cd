/**
 * Tests webhooks: registration, exactly one event for each cause, and deliveries that arrive, are signed and
 * are retried.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../src/app/embedded/index.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Sql } from '../../src/postgres/connection.js';
import { recordEvents } from '../../src/postgres/partnerEvents.js';
import type { Resolve } from '../../src/webhooks/allowedAddresses.js';
import { PER_PARTNER_MAX } from '../../src/webhooks/deliveries.store.js';
import { Sender } from '../../src/webhooks/sender.js';
import { freshStores } from '../setup/freshStores.js';
import type { Answer, Client, TestPartner } from '../support/client.js';
import { expectWithin } from '../support/expectWithin.js';
import { isSigned, type Receiver, type Reply, register, startReceiver } from '../support/receiver.js';
import { constants, startService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';
import { ALLOWED, DISALLOWED, INVALID } from '../support/webhookUrls.js';

type Json = Record<string, unknown>;
interface Delivery {
  id: string;
  eventId: string;
  event: string;
  status: string;
  attempts: number;
  maxAttempts: number;
  createdAt: string;
  lastAttemptAt: string | null;
  nextAttemptAt: string | null;
  responseStatus: number | null;
}

const RETRY_MS = 60;
const EVENTS = ['spin.large_win', 'settlement.report_ready', 'block.low_reserve', 'api_key.expiring'];

let stores: TestStores;
let client: Client & { running: { metricsPort: number }; stop(): Promise<void> };
let sql: Sql;
let books: postgres.Sql;
/** Addresses to which host names resolve, if a test sets them. */
const names = new Map<string, string[]>();
const resolve: Resolve = async (name) => names.get(name) ?? ['93.184.216.34'];

beforeAll(async () => {
  stores = await freshStores();
  const retries = [1, 2, 3, 4].map((n) => n * RETRY_MS);
  client = await startService(stores, constants({ webhookRetryDelaysMs: retries }), { resolve });
  sql = connectPostgres(stores.databaseUrl, { max: 4, name: 'test', onError: () => {} });
  books = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
});
afterAll(async () => {
  await Promise.all([sql.end(), books.end()]);
  await client.stop();
  await stores.drop();
});

const failed = (status: number, errorCode: string) => ({ status, body: { status: 'error', errorCode } });
const pathsOf = (answer: Answer): string[] =>
  ((answer.body.details as { path: string }[] | undefined) ?? []).map((fault) => fault.path).sort();

async function receiver(reply?: Reply, port?: number): Promise<Receiver> {
  const started = await startReceiver(reply, port);
  onTestFinished(() => started.close());
  return started;
}

/** Starts a server that accepts no further connections, like a host behind a firewall that drops packets. */
async function fullServer(): Promise<{ port: number }> {
  const server = new Worker(
    `const { parentPort } = require('node:worker_threads');
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`,
    { eval: true },
  );
  onTestFinished(async () => void (await server.terminate()));
  const [port] = (await once(server, 'message')) as [number];
  const waiting = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  onTestFinished(() => {
    for (const socket of waiting) socket.destroy();
  });
  // Linux accepts one connection more than the backlog, and drops later ones.
  await until(() => waiting.filter((socket) => !socket.connecting).length >= 2, 'the queue is full');
  return { port };
}

async function deliveries(key: string, id: number, query = ''): Promise<Delivery[]> {
  const answer = await client.partner<{ deliveries: Delivery[] }>(
    'GET',
    `/webhooks/${id}/deliveries${query}`,
    key,
  );
  expect(answer.status).toBe(200);
  return answer.body.deliveries;
}

/** Waits until the only delivery of a webhook has the expected status. */
async function settled(key: string, id: number, status: string): Promise<Delivery> {
  let last: Delivery | undefined;
  await until(async () => {
    [last] = await deliveries(key, id);
    return last?.status === status;
  }, `the delivery is ${status}`);
  return last!;
}

/** A settlement event as its transaction records it. */
const reportReady = (partnerId: number, revision = 1) =>
  ({
    event: 'settlement.report_ready',
    partnerId,
    createdAt: new Date(),
    data: { reportDate: '2026-05-01', revision, integrityHash: 'ab'.repeat(32), totalSpins: 7, ggrUsd: 1.25 },
  }) as const;
const happen = (partnerId: number, count = 1): Promise<number> =>
  sql.begin((tx) =>
    recordEvents(
      tx,
      Array.from({ length: count }, (_, i) => reportReady(partnerId, i + 1)),
    ),
  );

describe('registration of webhooks', () => {
  test('returns a webhook secret only at registration, lists all other fields, and deletes a webhook permanently', async () => {
    const { key } = await client.newPartner();
    const url = 'https://hooks.example.com/spindle?x=1';
    const made = await client.partner('POST', '/webhooks', key, { url, events: EVENTS });
    expect(made).toMatchObject({
      status: 201,
      body: { id: expect.any(Number), url, events: EVENTS, isActive: true, createdAt: expect.any(String) },
    });
    const { secret, ...shown } = made.body;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const second = await client.partner('POST', '/webhooks', key, { url, events: [EVENTS[1]] });
    expect(second.body.secret).not.toBe(secret);
    const health = {
      state: 'ok',
      reason: null,
      failingSince: null,
      pending: 0,
      limitedBy: null,
      restsUntil: null,
    };
    expect((await client.partner('GET', '/webhooks', key)).body).toEqual({
      webhooks: [{ ...shown, health }, expect.objectContaining({ id: second.body.id, events: [EVENTS[1]] })],
    });

    const gone = await client.partner('DELETE', `/webhooks/${made.body.id}`, key);
    expect(gone).toMatchObject({ status: 204, text: '' });
    expect((await client.partner<{ webhooks: Json[] }>('GET', '/webhooks', key)).body.webhooks).toHaveLength(
      1,
    );
    expect((await client.partner('GET', `/webhooks/${second.body.id}/deliveries`, key)).body).toEqual({
      deliveries: [],
      page: 1,
      limit: 20,
      total: 0,
    });
  });

  test.each([
    ['known', ['spin.large_win', 'spin.huge_win', 'api.version.deprecated'], ['/events/1', '/events/2']],
    ['text', [7, null, 'spin.large_win'], ['/events/0', '/events/1']],
    ['each once', ['spin.large_win', 'api_key.expiring', 'spin.large_win'], ['/events/2']],
    ['not nearly right', ['SPIN.LARGE_WIN', 'spin.large_win '], ['/events/0', '/events/1']],
  ])(
    'requires event types that are %s, otherwise refuses the webhook with KS-4107',
    async (_what, events, paths) => {
      const { key } = await client.newPartner();
      const answer = await client.partner('POST', '/webhooks', key, {
        url: 'https://h.example.com/',
        events,
      });
      expect(answer).toMatchObject(failed(400, 'KS-4107'));
      expect(pathsOf(answer)).toEqual(paths);
      expect((await client.partner('GET', '/webhooks', key)).body).toEqual({ webhooks: [] });
    },
  );

  test('limits a partner to 50 webhooks', async () => {
    const { key } = await client.newPartner();
    const body = { url: 'https://hooks.example.com/', events: [EVENTS[0]] };
    const answers: Answer[] = [];
    for (let i = 0; i < 13; i++) {
      const four = Array.from({ length: 4 }, () => client.partner('POST', '/webhooks', key, body));
      answers.push(...(await Promise.all(four)));
    }
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(50).fill(201), 409, 409]);
    const [refused] = answers.filter(({ status }) => status !== 201);
    expect(refused).toMatchObject(failed(409, 'KS-4114'));
    await client.partner('DELETE', `/webhooks/${answers.find(({ status }) => status === 201)!.body.id}`, key);
    expect((await client.partner('POST', '/webhooks', key, body)).status).toBe(201);
  });

  test('reports all faults of a webhook registration under the code of the first fault', async () => {
    const { key } = await client.newPartner();
    const refused = async (body: unknown, code: string, paths: string[]) => {
      const answer = await client.partner('POST', '/webhooks', key, body);
      expect(answer).toMatchObject(failed(400, code));
      expect(pathsOf(answer)).toEqual(paths);
    };
    await refused({ events: ['x'] }, 'KS-4102', ['/events/0', '/url']);
    await refused({ url: 'x' }, 'KS-4102', ['/events', '/url']);
    await refused({ url: 'x', events: [] }, 'KS-4106', ['/events', '/url']);
    await refused({ url: 'https://10.0.0.1/', events: ['y', 'z'] }, 'KS-4217', [
      '/events/0',
      '/events/1',
      '/url',
    ]);
  });
});

describe('webhook URLs at registration', () => {
  let sandbox: TestPartner;
  let production: TestPartner;

  beforeAll(async () => {
    sandbox = await client.newPartner();
    production = await client.newPartner({ environment: 'production' });
  });

  const added = (partner: TestPartner, url: unknown): Promise<Answer> =>
    client.partner('POST', '/webhooks', partner.key, { url, events: ['spin.large_win'] });
  const refusal = (errorCode: string) => ({
    status: 400,
    body: { status: 'error', errorCode, details: [{ path: '/url', message: expect.any(String) }] },
  });

  test('refuses each kind of forbidden or invalid webhook URL with its code, and registers nothing', async () => {
    for (const partner of [sandbox, production]) {
      for (const url of DISALLOWED) expect(await added(partner, url), url).toMatchObject(refusal('KS-4217'));
      for (const url of INVALID) expect(await added(partner, url), url).toMatchObject(refusal('KS-4106'));
      expect((await client.partner('GET', '/webhooks', partner.key)).body).toEqual({ webhooks: [] });
    }
  });

  test('registers each allowed webhook URL unchanged', async () => {
    for (const url of ALLOWED) {
      expect(await added(production, url), url).toMatchObject({ status: 201, body: { url } });
    }
    expect(await added(sandbox, 'http://localhost:9000/x')).toMatchObject({ status: 201 });
    expect(await added(production, 'http://localhost:9000/x')).toMatchObject(refusal('KS-4217'));
  });

  test('refuses a webhook host name if it resolves to a private address', async () => {
    names.set('rebound.example.com', ['93.184.216.34', '10.0.0.7']);
    expect(await added(production, 'https://rebound.example.com/')).toMatchObject(refusal('KS-4217'));
    names.set('rebound.example.com', ['93.184.216.34']);
    expect((await added(production, 'https://rebound.example.com/')).status).toBe(201);
  });
});

describe('webhook deliveries', () => {
  test('delivers a webhook event as documented, with the stored bytes, every header and both signatures', async () => {
    const to = await receiver();
    const { key, partnerId } = await client.newPartner();
    const { id, secret } = await register(client, key, to.url('/in?x=%20y'), EVENTS);
    expect(await happen(partnerId)).toBe(1);
    const row = await settled(key, id, 'delivered');
    expect(to.received).toHaveLength(1);
    const [request] = to.received;
    const { path, headers, bytes, event } = request!;
    expect(path).toBe('/in?x=%20y');
    expect(Object.keys(event)).toEqual(['id', 'event', 'createdAt', 'partnerId', 'data']);
    expect(event).toMatchObject({
      id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
      event: 'settlement.report_ready',
      partnerId,
      data: { reportDate: '2026-05-01', revision: 1, totalSpins: 7, ggrUsd: 1.25 },
    });
    expect(new Date(event.createdAt).toISOString()).toBe(event.createdAt);
    const [stored] = await books<{ body: string }[]>`SELECT body FROM events WHERE event_id = ${event.id}`;
    expect(bytes.toString('utf8')).toBe(stored!.body);
    const now = Date.now() / 1000;
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-spindle-event': 'settlement.report_ready',
      'x-spindle-delivery-id': row.id,
      'x-spindle-attempt': '1',
      'webhook-id': event.id,
    });
    expect(Math.abs(Number(headers['webhook-timestamp']) - now)).toBeLessThan(30);
    expect(isSigned(request!, secret)).toBe(true);
    expect(isSigned({ ...request!, bytes: Buffer.concat([bytes, Buffer.from(' ')]) }, secret)).toBe(false);
    expect(isSigned(request!, `whsec_${Buffer.alloc(32).toString('base64')}`)).toBe(false);
    expect(row).toMatchObject({
      eventId: event.id,
      event: 'settlement.report_ready',
      status: 'delivered',
      attempts: 1,
      maxAttempts: 5,
      nextAttemptAt: null,
      responseStatus: 204,
    });
    expect(Date.parse(row.lastAttemptAt!)).toBeGreaterThanOrEqual(Date.parse(row.createdAt) - 1000);
  });

  test('retries a delivery that is not answered with 2xx after each wait, with the same bytes and ids', async () => {
    const answers = [500, 302, 404, 100, 200];
    const elsewhere = await receiver();
    const to = await receiver((_request, response, incoming) => {
      const status = answers[to.received.length - 1]!;
      // The receiver closes the connection without a response.
      if (status === 100) incoming.socket.destroy();
      else response.writeHead(status, { Location: elsewhere.url('/redirected') }).end();
    });
    const { key, partnerId } = await client.newPartner();
    const { id, secret } = await register(client, key, to.url(), EVENTS);
    await happen(partnerId);
    const row = await settled(key, id, 'delivered');
    expect(row).toMatchObject({ attempts: 5, responseStatus: 200 });
    expect(to.received.map(({ headers }) => headers['x-spindle-attempt'])).toEqual(['1', '2', '3', '4', '5']);
    const one = (values: unknown[]) => expect(new Set(values).size).toBe(1);
    one(to.received.map(({ bytes }) => bytes.toString('latin1')));
    one(to.received.map(({ headers }) => headers['x-spindle-delivery-id']));
    one(to.received.map(({ headers }) => headers['webhook-id']));
    one(to.received.map(({ headers }) => headers['x-spindle-signature']));
    for (const request of to.received) expect(isSigned(request, secret)).toBe(true);
    to.received.slice(1).forEach(({ atMs }, i) => {
      expect(atMs - to.received[i]!.atMs).toBeGreaterThanOrEqual((i + 1) * RETRY_MS - 5);
    });
    expect(elsewhere.received).toEqual([]);
  });

  test('marks a delivery as failed after five attempts, and records each attempt', async () => {
    const to = await receiver((_request, response) => void response.writeHead(503).end('no'));
    const { key, partnerId } = await client.newPartner();
    const { id } = await register(client, key, to.url(), EVENTS);
    await happen(partnerId);
    const seen = new Map<number, Delivery>();
    await until(async () => {
      const [row] = await deliveries(key, id);
      seen.set(row!.attempts, row!);
      return row!.status === 'failed';
    }, 'the delivery has failed');
    for (const [attempts, row] of seen) {
      const isLast = attempts === 5;
      expect(row.status).toBe(isLast ? 'failed' : 'pending');
      expect(row.responseStatus).toBe(attempts === 0 ? null : 503);
      if (isLast) expect(row.nextAttemptAt).toBeNull();
      else if (attempts > 0) {
        const waitMs = Date.parse(row.nextAttemptAt!) - Date.parse(row.lastAttemptAt!);
        expect(waitMs).toBeGreaterThanOrEqual(attempts * RETRY_MS - 1);
      }
    }
    expect(seen.has(5)).toBe(true);
    expect(to.received).toHaveLength(5);
    const text = await (await fetch(`http://127.0.0.1:${client.running.metricsPort}/metrics`)).text();
    expect(text).toMatch(/spindle_webhook_attempts_total\{result="exhausted"\} [1-9]/);
    expect(text).toMatch(/spindle_webhook_attempts_total\{result="delivered"\} [1-9]/);
    expect(text).toMatch(/spindle_webhook_attempt_seconds_count [1-9]/);
    expect(text).toMatch(/spindle_webhook_deliveries\{state="pending"\} \d/);
    expect(text).toMatch(/spindle_webhook_oldest_due_seconds\{limited_by="none"\} \d/);
  });

  test('keeps the newest 20 attempts of a delivery, each with the first 200 bytes of its response', async () => {
    const answer = `\u0000out of order: ${'x'.repeat(300)}`;
    const to = await receiver((_request, response) => void response.writeHead(503).end(answer));
    const { key, partnerId } = await client.newPartner();
    const { id } = await register(client, key, to.url(), ['spin.large_win']);
    await client.partner('POST', `/webhooks/${id}/test`, key, { event: 'spin.large_win' });
    type Logged = { attemptLog: Record<string, unknown>[] };
    const logged = async (): Promise<Logged['attemptLog']> => {
      const of = `/deliveries?partnerId=${partnerId}`;
      return (await client.operator<{ deliveries: Logged[] }>('GET', of)).body.deliveries[0]!.attemptLog;
    };
    const { id: deliveryId } = await settled(key, id, 'failed');
    const first = await logged();
    expect(first.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
    for (const made of first)
      expect(made).toMatchObject({
        at: expect.stringMatching(/^\d{4}-.*Z$/),
        durationMs: expect.any(Number),
        responseStatus: 503,
        error: 'answered 503',
        responseStart: ` ${answer.slice(1, 200)}`,
      });
    for (let times = 1; times <= 4; times++) {
      expect((await client.operator('POST', `/deliveries/${deliveryId}/resend`)).status).toBe(202);
      await until(() => to.received.length === 5 * (times + 1), 'all attempts were made');
      await settled(key, id, 'failed');
    }
    const kept = await logged();
    expect(kept).toHaveLength(20);
    expect(kept).not.toContainEqual(first[0]);
    expect([...kept].map(({ at }) => at)).toEqual(kept.map(({ at }) => at).sort());
  });

  test('records no response status for a delivery that reached no server', async () => {
    const { key, partnerId } = await client.newPartner();
    const { id } = await register(client, key, `http://localhost:${await freePort()}/`, EVENTS);
    await happen(partnerId);
    expect(await settled(key, id, 'failed')).toMatchObject({ attempts: 5, responseStatus: null });
  });

  test("reads at most 64 KB of a webhook receiver's response", async () => {
    let sent = 0;
    const to = await receiver((_request, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(16_384, 0x61);
      const more = (): void => {
        while (!response.destroyed && sent < 1e9) {
          sent += chunk.length;
          if (!response.write(chunk)) {
            response.once('drain', more);
            return;
          }
        }
      };
      more();
    });
    const { key, partnerId } = await client.newPartner();
    const { id } = await register(client, key, to.url(), EVENTS);
    await happen(partnerId);
    expect(await settled(key, id, 'delivered')).toMatchObject({ attempts: 1, responseStatus: 200 });
    await until(() => to.connections.open === 0, 'the connection is closed');
    // The socket buffers of both sides contain additional bytes.
    expect(sent).toBeLessThan(20e6);
  });

  test('sends no further delivery to a deleted webhook', async () => {
    const to = await receiver((_request, response) => void response.writeHead(500).end());
    const { key, partnerId } = await client.newPartner();
    const { id } = await register(client, key, to.url(), EVENTS);
    const kept = await register(client, key, to.url('/kept'), EVENTS);
    await happen(partnerId, 3);
    await until(() => to.received.filter(({ path }) => path === '/').length >= 3, 'each was tried once');
    expect((await client.partner('DELETE', `/webhooks/${id}`, key)).status).toBe(204);
    const before = to.received.filter(({ path }) => path === '/').length;
    const attemptsOf = () => books<{ delivery_id: string; attempts: number }[]>`
      SELECT delivery_id, attempts FROM deliveries WHERE webhook_id = ${id} ORDER BY delivery_id`;
    const atDeletion = await attemptsOf();
    await happen(partnerId);
    await until(async () => {
      const rows = await deliveries(key, kept.id);
      return rows.length === 4 && rows.every(({ status }) => status === 'failed');
    }, 'those of the other webhook have had their attempts');
    // An attempt that was in progress when the webhook was deleted may have arrived.
    expect(to.received.filter(({ path }) => path === '/').length).toBeLessThanOrEqual(before + 3);
    // The deliveries are kept on record: pending ones remain pending, and later events have no delivery for
    // the deleted webhook.
    const rows = await attemptsOf();
    expect(rows).toHaveLength(3);
    for (const [i, { attempts }] of rows.entries())
      expect(attempts).toBeLessThanOrEqual(atDeletion[i]!.attempts + 1);
  });

  test('lists webhook deliveries in pages, newest first', async () => {
    const to = await receiver();
    const { key, partnerId } = await client.newPartner();
    const { id } = await register(client, key, to.url(), EVENTS);
    for (let i = 0; i < 5; i++) await happen(partnerId);
    const all = await deliveries(key, id);
    expect(all).toHaveLength(5);
    const times = all.map(({ createdAt }) => Date.parse(createdAt));
    expect(times).toEqual([...times].sort((a, b) => b - a));
    const page = await client.partner<{ deliveries: Delivery[] }>(
      'GET',
      `/webhooks/${id}/deliveries?page=2&limit=2`,
      key,
    );
    expect(page.body).toMatchObject({ page: 2, limit: 2, total: 5 });
    expect(page.body.deliveries.map((row) => row.id)).toEqual(all.slice(2, 4).map((row) => row.id));
  });

  test("checks the webhook's address at each connection, and sends nothing if the name now leads to this machine", async () => {
    const to = await receiver();
    const { key, partnerId } = await client.newPartner({ environment: 'production' });
    const { id } = await register(client, key, `https://rebinding.example.com:${to.port}/`, EVENTS);
    names.set('rebinding.example.com', ['127.0.0.1']);
    await happen(partnerId);
    expect(await settled(key, id, 'failed')).toMatchObject({ attempts: 5, responseStatus: null });
    const [row] = await books<{ last_error: string }[]>`
      SELECT last_error FROM deliveries WHERE webhook_id = ${id}`;
    expect(row!.last_error).toContain('127.0.0.1, which is not a public address');
    expect(to.connections.made).toBe(0);
  });
});

describe('webhook delivery attempts', () => {
  const due = {
    deliveryId: 'dlv_1',
    webhookId: 1,
    eventId: 'evt_1',
    event: 'spin.large_win',
    body: '{"id":"evt_1"}',
    apiVersion: 'v1',
    secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
    environment: 'sandbox',
    attempts: 0,
    maxAttempts: 5,
  } as const;
  const attempt = (url: string, options: { timeLimitMs?: number; resolve?: Resolve } = {}) =>
    new Sender({ brand: 'Acme', timeLimitMs: 60_000, resolve, ...options }).send({ ...due, url }).outcome;
  const SHORT = { timeLimitMs: 300 };
  const timedOut = { isDelivered: false, responseStatus: null, error: 'timed out', responseStart: null };

  test('sends the brand in the headers of a webhook delivery', async () => {
    const to = await receiver();
    expect(await attempt(to.url())).toEqual({
      isDelivered: true,
      responseStatus: 204,
      error: null,
      responseStart: null,
    });
    expect(to.received[0]!.headers).toMatchObject({
      'x-acme-event': 'spin.large_win',
      'x-acme-attempt': '1',
    });
  });

  test.each<[string, Reply]>([
    ['never answers', () => {}],
    ['never ends its answer', (_request, response) => void response.writeHead(200).write('a')],
    [
      'answers drop by drop',
      (_request, response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write('a'), 20);
        response.on('close', () => clearInterval(timer));
      },
    ],
  ])('ends a webhook attempt at its time limit if the receiver %s', async (_what, reply) => {
    const to = await receiver(reply);
    const started = performance.now();
    expect(await attempt(to.url(), SHORT)).toMatchObject({ isDelivered: false, error: 'timed out' });
    expect(performance.now() - started).toBeGreaterThan(290);
    await until(() => to.connections.open === 0, 'the connection is closed');
  });

  test('ends a webhook attempt at its time limit if no name server responds', async () => {
    const silent: Resolve = () => new Promise(() => {});
    expect(await attempt('https://hooks.example.com/', { ...SHORT, resolve: silent })).toEqual(timedOut);
  });

  test('ends a webhook attempt at its time limit, or when it is aborted, if no connection is established', async () => {
    const busy = await fullServer();
    const url = `http://localhost:${busy.port}/`;
    expect(await attempt(url, SHORT)).toEqual(timedOut);
    const sending = new Sender({ brand: 'Acme', timeLimitMs: 60_000, resolve }).send({ ...due, url });
    const started = performance.now();
    setTimeout(() => sending.giveUp(), 100);
    expect(await sending.outcome).toBeUndefined();
    expectWithin(performance.now() - started, 30_000);
  });

  test('an attempt of a webhook delivery that was aborted has no outcome', async () => {
    const to = await receiver(() => sending.giveUp());
    const sender = new Sender({ brand: 'Acme', timeLimitMs: 60_000, resolve });
    const sending = sender.send({ ...due, url: to.url() });
    expect(await sending.outcome).toBeUndefined();
  });

  test('connects a webhook attempt to the address that was checked, and resolves the host name only once', async () => {
    const asked: string[] = [];
    // The name has a public address at the check, and the address of this machine afterwards.
    const turning: Resolve = async (name) => (asked.push(name) === 1 ? ['198.51.100.1'] : ['127.0.0.1']);
    const to = await receiver();
    const url = `https://turning.example.com:${to.port}/`;
    const refused = await attempt(url, { resolve: turning });
    // TEST-NET-2 is not public either.
    expect(refused?.error).toContain('198.51.100.1');
    asked.length = 0;
    const publicAtFirst: Resolve = async (name) =>
      asked.push(name) === 1 ? ['93.184.216.34'] : ['127.0.0.1'];
    const outcome = await attempt(url, { ...SHORT, resolve: publicAtFirst });
    expect(outcome?.isDelivered).toBe(false);
    expect(asked).toEqual(['turning.example.com']);
    expect(to.connections.made).toBe(0);
  });

  test.each(['https://127.0.0.1/', 'https://[::1]/', 'https://localhost/', 'http://127.0.0.1/'])(
    'makes no webhook attempt to %s, even if such a URL was registered',
    async (url) => {
      const to = await receiver();
      const at = new URL(url);
      at.port = String(to.port);
      expect(await attempt(at.href)).toMatchObject({ isDelivered: false, responseStatus: null });
      expect(to.connections.made).toBe(0);
    },
  );
});

describe('webhook receivers that hang', () => {
  test('delivers to another webhook at once while hundreds of deliveries wait for a receiver that hangs', async () => {
    const slow = await receiver(() => {});
    const quick = await receiver();
    const { key, partnerId } = await client.newPartner();
    const other = await client.newPartner();
    const { id } = await register(client, key, slow.url(), EVENTS);
    await register(client, other.key, quick.url(), EVENTS);
    await happen(partnerId, 400);
    await until(() => slow.received.length === PER_PARTNER_MAX, 'as many attempts as may be are under way');
    const tookMs: number[] = [];
    for (let n = 1; n <= 5; n++) {
      const started = performance.now();
      await happen(other.partnerId);
      await until(() => quick.received.length === n, 'the quick one is told');
      tookMs.push(performance.now() - started);
    }
    // An attempt to a receiver that hangs takes 15 s.
    expectWithin(Math.max(...tookMs), 14_000);
    expect(slow.received).toHaveLength(PER_PARTNER_MAX);
    expect(slow.connections.open).toBe(PER_PARTNER_MAX);
    expect((await client.partner('DELETE', `/webhooks/${id}`, key)).status).toBe(204);
  });

  test('can start attempts to other webhooks however many receivers hang', async () => {
    const slow = await receiver(() => {});
    const quick = await receiver();
    const hanging = await Promise.all(Array.from({ length: 5 }, () => client.newPartner()));
    const partnerIds = hanging.map(({ partnerId }) => partnerId);
    const other = await client.newPartner();
    await register(client, other.key, quick.url(), EVENTS);
    await books`
      INSERT INTO webhooks (partner_id, url, host, events, secret)
      SELECT partner_id, ${slow.url()}, 'localhost', '{settlement.report_ready}', 'whsec_'
      FROM unnest(${partnerIds}::int[]) AS p(partner_id), generate_series(1, 60)`;
    for (const partnerId of partnerIds) await happen(partnerId);
    await until(() => slow.received.length === 300, 'an attempt of each is under way');
    const begun = slow.received.at(-1)!.atMs;
    await until(() => performance.now() - begun > 2500, 'they are known to be slow');
    for (const partnerId of partnerIds) await happen(partnerId, 3);
    for (let n = 1; n <= 3; n++) {
      await happen(other.partnerId);
      await until(() => quick.received.length === n, 'the quick one is told');
    }
    expect(slow.received).toHaveLength(300);
    await books`UPDATE webhooks SET deleted_at = now() WHERE partner_id = ANY(${partnerIds})`;
  });
});
