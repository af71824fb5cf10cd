/**
 * Tests raffle tickets that Redis loses before they are committed: the responses to their buyers, and the
 * sale of the remaining tickets.
 */
import { readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { cellKey, outboxKey } from '../../../src/engine/redis/keys.js';
import type { TestPartner } from '../../support/client.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService, startService } from '../../support/service.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const SETTINGS = { CELLS: '1', SPIN_DEADLINE_MS: '1500' };

let stores: OwnStores;
let worker: ServerProcess;
let front: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let redis: Redis;
let gameId: number;

const startWorker = async (): Promise<void> => {
  worker = await spawnService(environment(stores, { ...SETTINGS, ROLES: 'worker' }));
};

beforeAll(async () => {
  stores = await ownStores();
  await startWorker();
  front = await startService(stores, { ...SETTINGS, ROLES: 'http' });
  partner = await front.newPartner();
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  redis.on('error', () => {});
});

afterAll(async () => {
  redis.disconnect();
  await front.stop();
  await worker.end();
  await stores.drop();
});

let made = 0;
beforeEach(async () => {
  const { body } = await front.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partner.partnerId}/raffles`,
    {
      displayName: 'A raffle',
      configName: `RAFFLE_${++made}`,
      ticketPriceUsd: 0.5,
      poolSize: 2,
      prizes: [{ prizeName: 'Car', prizeTier: 6, valueUsd: 50, count: 1 }],
    },
  );
  gameId = body.gameConfigId;
  await until(async () => (await pool()).body.status === 'ACTIVE', 'the raffle is open');
});

const pool = () => front.partner('GET', `/games/${gameId}/pool`, partner.key);
const buy = async (requestId: string): Promise<string> => {
  const { status, body } = await front.spin(partner.key, {
    gameId,
    playerId: 'alice',
    wagerUsd: 0.5,
    requestId: `${gameId}-${requestId}`,
  });
  return `${status} ${body.errorCode ?? ''}`.trim();
};
const inOutbox = () => redis.xlen(outboxKey(0));

/** Buys a ticket and retries until it is sold. */
async function sold(requestId: string): Promise<void> {
  let answer = await buy(requestId);
  await until(async () => {
    if (answer === '200') return true;
    // On a busy machine the ticket may be committed only after the deadline. A retry with the same requestId
    // gets the result.
    expect(['503 KS-5002', '503 KS-5012', '409 KS-4110']).toContain(answer);
    answer = await buy(requestId);
    return answer === '200';
  }, 'a ticket is sold');
}

test('a raffle is not reported as closed before its last ticket is committed, because that ticket may be lost', async () => {
  await sold('first');
  await worker.end('SIGKILL');
  const last = buy('last');
  await until(async () => (await inOutbox()) > 0, 'the last ticket is dealt');
  const early = buy('early');
  // The worker was killed, so no worker commits the tickets before Redis loses them.
  expect(await early).toBe('503 KS-5002');
  expect(await last).toBe('409 KS-4110');
  const epoch = await redis.hget(cellKey(0), 'epoch');
  await redis.flushdb();
  await startWorker();
  await until(async () => ![null, epoch].includes(await redis.hget(cellKey(0), 'epoch')), 'it is rebuilt');
  await sold('early');
  expect(await buy('late')).toBe('410 KS-4218');
  expect((await pool()).body.status).toBe('CLOSED');
});

test('later tickets do not wait for tickets that Redis lost under the same epoch', async () => {
  await sold('first');
  await until(async () => (await inOutbox()) === 0, 'it is booked and trimmed');
  const folder = join(stores.dataDir, 'redis', 'appendonlydir');
  const log = join(folder, (await readdir(folder)).find((name) => name.endsWith('.incr.aof'))!);
  await worker.end('SIGKILL');
  const { size } = await stat(log);
  expect(await buy('lost')).toBe('409 KS-4110');
  // The append-only file is truncated, so that Redis restarts like a replica that lagged behind.
  await stores.redis.stop();
  await truncate(log, size);
  await stores.redis.start();
  await startWorker();
  await sold('last');
  expect(await buy('lost')).toBe('410 KS-4218');
});
