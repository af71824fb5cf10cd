import { once } from 'node:events';
import { createServer } from 'node:net';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { expectWithin } from '../../support/expectWithin.js';
import { load, portOf, spinRequest, Wire } from '../../support/load.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const CONNECTIONS = 32;
/** Number of answered spins at which the stop signal is sent. Many more spins are in progress then. */
const SPINS_BEFORE = 1500;
const STOP_WITHIN_MS = 10_000;

describe.each([
  ['SIGTERM', '1'],
  ['SIGINT', '1'],
  ['SIGTERM', '2'],
] as const)('%s under load with FRONT_ENDS=%s', (signal, frontEnds) => {
  let stores: TestStores;
  let service: ServerProcess;
  let partner: TestPartner;
  let gameId: number;
  let redis: Redis;
  let sql: postgres.Sql<{ bigint: bigint }>;
  const sent = new Map<Buffer, string>();
  /** Responses to spins, by requestId. */
  const answered = new Map<string, string>();
  const otherStatuses: string[] = [];
  let exit: number | string;
  let stopMs: number;

  const body = (requestId: string) =>
    JSON.stringify({ gameId, playerId: `p${requestId.length}`, wagerUsd: 0.25, requestId });

  beforeAll(async () => {
    stores = await freshStores();
    service = await spawnService(environment(stores, { FRONT_ENDS: frontEnds }));
    partner = await service.client.newPartner();
    gameId = await service.client.newGame(partner.key, parSheet('classic-3-reel'));
    redis = new Redis(stores.redisUrl, { protocol: 2 });
    sql = postgres(stores.databaseUrl, { max: 1, types: { bigint: postgres.BigInt } });

    const loaded = load({
      port: portOf(service.client.base),
      connections: CONNECTIONS,
      next: () => {
        const requestId = `r-${sent.size}`;
        const request = spinRequest(partner.key, body(requestId));
        sent.set(request, requestId);
        return request;
      },
      onAnswer: ({ status, text }, request) => {
        if (status === 200) answered.set(sent.get(request)!, text);
        else otherStatuses.push(`${status} ${text}`);
      },
    });
    await until(() => answered.size >= SPINS_BEFORE, 'spins are under way');
    const started = performance.now();
    exit = await service.end(signal);
    stopMs = performance.now() - started;
    expect(await loaded).toBe(CONNECTIONS);
  });

  afterAll(async () => {
    redis.disconnect();
    await sql.end();
    await service.end();
    await stores.drop();
  });

  test('exits with status 0 within 10 s of a stop signal under load', () => {
    expect(exit).toBe(0);
    expectWithin(stopMs, STOP_WITHIN_MS);
  });

  test('answers every spin that was dealt before a stop, and deals no unanswered spin', async () => {
    expect(otherStatuses).toEqual([]);
    expect(sent.size - answered.size).toBeLessThanOrEqual(CONNECTIONS);
    const rows = await sql<{ request_id: string }[]>`SELECT request_id FROM ledger WHERE kind = 1`;
    expect(rows.map((row) => row.request_id).sort()).toEqual([...answered.keys()].sort());
  });

  test('leaves no entry in an outbox after a stop under load', async () => {
    const outboxes = await redis.keys('{c*}:outbox');
    expect(outboxes.length).toBeGreaterThan(0);
    for (const outbox of outboxes) expect([outbox, await redis.xlen(outbox)]).toEqual([outbox, 0]);
  });

  test('continues with the next outcome index after a stop, and answers a retry of each unanswered requestId', async () => {
    service = await spawnService(environment(stores, { FRONT_ENDS: frontEnds }));
    const [requestId, text] = [...answered].at(-1)!;
    const replay = await service.client.spin(partner.key, body(requestId));
    expect([replay.headers.get('idempotent-replayed'), replay.text]).toEqual(['true', text]);
    const left = [...sent.values()].filter((id) => !answered.has(id));
    for (const id of [...left, 'one-more']) {
      const answer = await service.client.spin(partner.key, body(id));
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([200, null]);
    }
    const expected = answered.size + left.length + 1;
    await until(async () => {
      const [row] = await sql<{ next_index: bigint }[]>`SELECT next_index FROM game_progress`;
      return Number(row!.next_index) >= expected;
    }, 'the new spins are booked');
    const [row] = await sql`
      SELECT count(*)::int AS spins, count(DISTINCT outcome_index)::int AS indices, min(outcome_index)::int AS first,
             max(outcome_index)::int AS last
      FROM ledger WHERE kind = 1`;
    expect(row).toEqual({ spins: expected, indices: expected, first: 0, last: expected - 1 });
  });
});

test('stops within seconds although clients neither complete a request nor disconnect', async () => {
  const stores = await freshStores();
  const service = await spawnService(environment(stores));
  const partner = await service.client.newPartner();
  const gameId = await service.client.newGame(partner.key, parSheet('classic-3-reel'));
  const request = spinRequest(partner.key, JSON.stringify({ gameId, playerId: 'slow', wagerUsd: 0.25 }));
  const port = portOf(service.client.base);
  const [idle, half, used] = await Promise.all([Wire.open(port), Wire.open(port), Wire.open(port)]);
  expect((await used.ask(request)).status).toBe(200);
  await half.send(request.subarray(0, -1));
  const started = performance.now();
  expect(await service.end()).toBe(0);
  expectWithin(performance.now() - started, STOP_WITHIN_MS);
  await Promise.all([idle.ended, half.ended, used.ended]);
  const sql = postgres(stores.databaseUrl, { max: 1 });
  expect(await sql`SELECT count(*)::int AS spins FROM ledger WHERE kind = 1`).toEqual([{ spins: 1 }]);
  await sql.end();
  await stores.drop();
});

describe('impossible starts', () => {
  let stores: TestStores;
  const taken = createServer();

  beforeAll(async () => {
    stores = await freshStores();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
  });
  afterAll(async () => {
    taken.close();
    await stores.drop();
  });

  /** A port on which nothing listens. */
  let closedPort: number;
  beforeEach(async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    closedPort = (server.address() as { port: number }).port;
    server.close();
    await once(server, 'close');
  });
  let started: ServerProcess | undefined;
  afterEach(async () => {
    await started?.end();
    started = undefined;
  });

  test.each([
    [
      'a port in use',
      () => ({ PORT: String(takenPort()) }),
      () => `Port ${takenPort()} of 127.0.0.1 is in use`,
    ],
    ['a metrics port in use', () => ({ METRICS_PORT: String(takenPort()) }), () => String(takenPort())],
    [
      'a Redis that is not there',
      () => ({ REDIS_URL: `redis://user:secret@127.0.0.1:${closedPort}` }),
      () => `Cannot connect to Redis at redis://127.0.0.1:${closedPort}`,
    ],
    [
      'a Postgres that is not there',
      () => ({ DATABASE_URL: `postgres://user:secret@127.0.0.1:${closedPort}/db` }),
      () => `Cannot connect to Postgres at postgres://127.0.0.1:${closedPort}/db: connect ECONNREFUSED`,
    ],
    [
      'a database that is not there',
      () => ({ DATABASE_URL: Object.assign(new URL(inject('databaseUrl')), { pathname: '/nowhere' }).href }),
      () => 'database "nowhere" does not exist',
    ],
    ['a setting that is not valid', () => ({ PORT: 'http' }), () => 'PORT'],
    ['a Postgres address that is none', () => ({ DATABASE_URL: 'nonsense' }), () => 'DATABASE_URL'],
    ['a Redis address that is none', () => ({ REDIS_URL: 'nonsense' }), () => 'REDIS_URL'],
  ])('reports %s in one line and exits with status 1', async (_what, settings, expected) => {
    const failed = await spawnService(environment(stores, { LOG_LEVEL: 'info', ...settings() })).then(
      (service) => {
        started = service;
        return 'it started';
      },
      (error: Error) => error.message,
    );
    expect(failed).toMatch(/^The server ended with 1: /);
    const said = failed.split('\n').filter((line) => line.includes('spindle: '));
    expect(said).toEqual([expect.stringContaining(expected())]);
    expect(failed).not.toMatch(/^\s+at /m);
    expect(failed).not.toContain('"stack"');
    expect(failed).not.toContain('secret');
  });

  function takenPort(): number {
    return (taken.address() as { port: number }).port;
  }
});
