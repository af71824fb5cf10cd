/**
 * Tests a Redis that fails over behind one address: the old primary becomes a replica, keeps its connections,
 * and lacks nothing, while the new primary lacks the last acknowledged spins. Also tests a Redis that refuses
 * writes.
 */
import type { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Cleanup } from '../../support/cleanup.js';
import type { TestPartner } from '../../support/client.js';
import { auditIsClean } from '../../support/failover.js';
import { type Cable, proxy } from '../../support/proxy.js';
import { ownRedis, rawRedis } from '../../support/redis.js';
import { type LoggedService, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const cleanup = new Cleanup();
let stores: OwnStores;
let cable: Cable;
let service: LoggedService;
let sql: postgres.Sql<{ bigint: bigint }>;
let partner: TestPartner;
let gameId: number;

afterEach(() => cleanup.run());

beforeEach(async () => {
  stores = await ownStores();
  cleanup.add(() => stores.drop());
  cable = await proxy(stores.redisUrl);
  cleanup.add(() => cable.close());
  sql = postgres(stores.databaseUrl, { max: 1, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  cleanup.add(() => sql.end());
  service = await startLogged({ ...stores, redisUrl: cable.url }, { CELLS: '1', SPIN_DEADLINE_MS: '2000' });
  cleanup.add(() => service.running.stop());
  partner = await service.newPartner({ openingBalanceUsd: 50 });
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});

const spin = (requestId: string) =>
  service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25, requestId });

async function play(name: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) expect(await spin(`${name}-${i}`)).toMatchObject({ status: 200 });
}

const missingOf = async (path: '/readyz' | '/statusz'): Promise<string> =>
  ((await service.request('GET', path)).body as { missing: string[] }).missing.join('\n');

const booked = async (): Promise<number> =>
  Number((await sql<{ n: bigint }[]>`SELECT count(*) AS n FROM ledger WHERE kind = 1`)[0]!.n);

const connected = (url: string): Redis => {
  const redis = rawRedis(url);
  cleanup.add(() => redis.disconnect());
  return redis;
};

test('spins resume without a restart after Redis has failed over behind its address, and nothing is dealt twice', async () => {
  const old = connected(stores.redisUrl);
  const replica = await ownRedis(cleanup);
  const promoted = connected(replica.url);
  const [from, to] = [new URL(stores.redisUrl), new URL(replica.url)];
  // One address has one password.
  await promoted.config('SET', 'requirepass', from.password);
  to.password = from.password;
  await promoted.config('SET', 'masterauth', from.password);
  await old.config('SET', 'masterauth', from.password);
  await promoted.replicaof(from.hostname, from.port);
  const isLinked = async (): Promise<boolean> => (await promoted.info()).includes('master_link_status:up');
  await until(isLinked, 'the replica follows');
  await play('both', 5);
  await old.wait(1, 0);
  await promoted.replicaof('NO', 'ONE');
  await play('old', 5);
  await until(async () => (await booked()) === 10, 'all is booked');
  await old.replicaof(to.hostname, to.port);

  // The address still leads to the old server.
  await until(async () => (await missingOf('/readyz')).includes('replica'), '/readyz names the replica');
  expect(await missingOf('/statusz')).toContain('replica');
  expect(await spin('meanwhile')).toMatchObject({ status: 503, body: { errorCode: 'KS-5002' } });

  cable.target = to.href;
  await until(async () => (await spin('new')).status === 200, 'spins are dealt again');
  await play('later', 5);
  await until(async () => (await booked()) === 16, 'all is booked');
  const twice =
    await sql`SELECT outcome_index FROM ledger WHERE kind = 1 GROUP BY game_id, outcome_index HAVING count(*) > 1`;
  expect([...twice]).toEqual([]);
  const recoveries = await sql`SELECT reason FROM recoveries`;
  expect([...recoveries]).toEqual([{ reason: expect.stringContaining('A replica has taken over') }]);
  await until(async () => (await service.request('GET', '/statusz')).status === 200, 'the service is well');
  // No connection of the service is left at the replica.
  const clients = String(await old.call('CLIENT', 'LIST', 'TYPE', 'NORMAL'))
    .trim()
    .split('\n');
  const subscribers = String(await old.call('CLIENT', 'LIST', 'TYPE', 'PUBSUB')).trim();
  expect({ clients: clients.length, subscribers }).toEqual({ clients: 1, subscribers: '' });
  await auditIsClean({ ...stores, redisUrl: to.href });
});

const REFUSALS: readonly [string, (redis: Redis) => Promise<unknown>, (redis: Redis) => Promise<unknown>][] =
  [
    [
      'OOM',
      (redis) => redis.config('SET', 'maxmemory', '1'),
      (redis) => redis.config('SET', 'maxmemory', '0'),
    ],
    [
      'NOREPLICAS',
      (redis) => redis.config('SET', 'min-replicas-to-write', '1'),
      (redis) => redis.config('SET', 'min-replicas-to-write', '0'),
    ],
    [
      'NOPERM',
      (redis) => redis.call('ACL', 'SETUSER', 'default', '-evalsha'),
      (redis) => redis.call('ACL', 'SETUSER', 'default', '+evalsha'),
    ],
  ];

test.each(REFUSALS)(
  'the health checks name a Redis that refuses writes with %s until it accepts them',
  async (code, refuse, accept) => {
    const redis = connected(stores.redisUrl);
    await play('before', 1);
    await refuse(redis);
    await until(async () => (await missingOf('/readyz')).includes(code), '/readyz names the refusal');
    expect(await missingOf('/statusz')).toContain(code);
    expect((await spin('refused')).status).toBe(503);
    await accept(redis);
    // No spin is needed: a load balancer sends none to a process that is not ready.
    await until(async () => (await missingOf('/readyz')) === '', 'the process is ready again');
    await play('after', 1);
  },
);
