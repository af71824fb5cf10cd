/**
 * Tests that no cell is prepared while the clock of Redis differs from the other clocks, because a prepared
 * cell continues from the clock of Redis.
 */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { cellKey } from '../../../src/engine/redis/keys.js';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const TWO_HOURS_MS = 7_200_000;

let stores: TestStores;
let sql: postgres.Sql;
let redis: Redis;
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;
/** Time by which the clock of Redis is ahead of the clock of the service, in ms. */
let redisAheadMs = 0;

beforeEach(async () => {
  redisAheadMs = 0;
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  service = await startService(stores, { CELLS: '1' }, { now: () => Date.now() - redisAheadMs });
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  expect((await spin()).status).toBe(200);
});
afterEach(async () => {
  await service.stop();
  redis.disconnect();
  await sql.end();
  await stores.drop();
});

const spin = () => service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${service.running.metricsPort}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
};
const problems = async (): Promise<{ status: number; missing: string }> => {
  const { status, body } = await service.request<{ missing?: string[] }>('GET', '/statusz');
  return { status, missing: (body.missing ?? []).join('\n') };
};

test.each([
  ['ahead', TWO_HOURS_MS],
  ['behind', -TWO_HOURS_MS],
])(
  'a Redis that is emptied while its clock is two hours %s is rebuilt and dealt from once the clocks agree',
  async (word, ms) => {
    redisAheadMs = ms;
    const refusals = await metric('spindle_clock_refusals_total');
    await redis.flushdb();
    await until(
      async () => (await metric('spindle_clock_refusals_total')) >= refusals + 3,
      'its preparation is refused again and again',
    );
    expect([...(await sql`SELECT * FROM recoveries`)]).toEqual([]);
    expect(await redis.hget(cellKey(0), 'epoch')).toBeNull();
    const { status, missing } = await problems();
    expect(status).toBe(503);
    expect(missing).toMatch(new RegExp(`The clock of Redis at .* is 7\\d\\d\\d(\\.\\d+)? s ${word}`));

    redisAheadMs = 0;
    await until(async () => (await problems()).status === 200, 'the service is ready');
    // The test waits for the first spin, because the blocks of a rebuilt cell are made anew.
    await until(async () => (await spin()).status === 200, 'spins are dealt');
    expect((await sql`SELECT * FROM recoveries`).length).toBe(1);
  },
);
