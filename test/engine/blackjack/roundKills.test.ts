/**
 * Kills the service and Redis while blackjack rounds are played. Afterwards every round must be settled
 * according to its shoe and its actions, and the balances must be exact.
 */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { OPENING_USD, RoundPlayers, RULES, WAGER_USD } from '../../chaos/roundPlayers.js';
import { portOf } from '../../support/load.js';
import { expectClean, newTable } from '../../support/rounds.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const ROUNDS = 200;
const CONNECTIONS = 16;

let stores: OwnStores;
let service: ServerProcess;
let sql: postgres.Sql<{ bigint: bigint }>;
let redis: Redis;

const launch = () => spawnService(environment(stores));

beforeAll(async () => {
  stores = await ownStores();
  service = await launch();
  sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  redis.on('error', () => {});
});

afterAll(async () => {
  redis?.disconnect();
  await sql?.end();
  await service?.stop();
  await stores?.drop();
});

test('blackjack rounds continue with their shoes after the service and Redis are killed and Redis is wiped', async () => {
  const { client } = service;
  const partner = await client.newPartner({ openingBalanceUsd: OPENING_USD, spinRateLimit: 1_000_000 });
  const tables: number[] = [];
  for (const rules of RULES)
    tables.push(await newTable(client, partner.partnerId, rules, { wagerUsd: WAGER_USD }));
  let port = portOf(client.base);
  const players = new RoundPlayers({
    port: () => port,
    key: partner.key,
    tables,
    connections: CONNECTIONS,
    seed: 'kills',
  });
  const playing = players.play(ROUNDS);
  const played = (rounds: number) => until(() => players.rounds >= rounds, `${rounds} rounds are played`);

  await played(ROUNDS * 0.2);
  await service.end('SIGKILL');
  service = await launch();
  port = portOf(service.client.base);
  await played(ROUNDS * 0.4);
  await stores.redis.kill();
  await played(ROUNDS * 0.6);
  await redis.flushdb();
  await playing;

  // The retries prove that rounds were in progress at each kill.
  expect(players.again).toBeGreaterThan(0);
  expect(await players.judge(stores.databaseUrl)).toEqual([]);
  expect(players.rounds).toBe(ROUNDS);
  await expectClean(stores, sql);
});
