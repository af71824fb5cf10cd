/**
 * Tests that no outcome is dealt after the clock of a front end or of Redis has jumped, or while the entry
 * ids from an earlier jump lie in the future.
 */
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { cellKey } from '../../../src/engine/redis/keys.js';
import { world } from '../../setup/world.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const MINUTE_MS = 60_000;

const { stores, service, redis, partner } = world(
  { CELLS: '1' },
  { outside: { now: () => Date.now() + aheadMs } },
);
let gameId: number;
/** Time by which the front end's clock is ahead of the Redis clock, in ms. */
let aheadMs = 0;

beforeAll(async () => {
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const ready = async (): Promise<number> => {
    const { body } = await service.operator<{ queue: { readyBlocks: number } }>('GET', `/games/${gameId}`);
    return body.queue.readyBlocks;
  };
  // Once all blocks are loaded, only spins change the game's record.
  await until(async () => (await ready()) === 3, 'all of its blocks are loaded');
});

beforeEach(() => {
  aheadMs = 0;
});

const spin = () => service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
const refusals = async (): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${service.running.metricsPort}/metrics`)).text();
  return Number(/^spindle_clock_refusals_total (\d+)$/m.exec(text)?.[1]);
};
const newest = async (): Promise<string | undefined> =>
  (await redis.hgetBuffer(cellKey(0), 'last'))?.toString('hex');

/** Checks that a spin is refused and that the data of the cell does not change. */
async function expectRefused(): Promise<void> {
  const before = {
    last: await newest(),
    refusals: await refusals(),
    games: await redis.hgetall('{c0}:games'),
  };
  const answer = await spin();
  expect(answer).toMatchObject({ status: 503, body: { errorCode: 'KS-5002' } });
  expect(await newest()).toBe(before.last);
  expect(await redis.hgetall('{c0}:games')).toEqual(before.games);
  expect(await refusals()).toBeGreaterThan(before.refusals);
}

test('deals spins while the clocks of a front end and Redis differ by less than CLOCK_SKEW_MAX_S', async () => {
  for (const ms of [-8000, 0, 8000]) {
    aheadMs = ms;
    expect((await spin()).status).toBe(200);
  }
});

test.for([
  ['Redis is ahead', -MINUTE_MS],
  ['Redis is behind', MINUTE_MS],
] as const)(
  'deals and writes nothing and raises an alarm if the clocks differ (%s by a minute)',
  async ([, ms]) => {
    aheadMs = ms;
    await expectRefused();
    aheadMs = 0;
    expect((await spin()).status).toBe(200);
  },
);

test('deals nothing before the time of the newest entry if an earlier clock jump dated that entry in the future', async () => {
  const last = (await redis.hgetBuffer(cellKey(0), 'last'))!;
  const jumped = Buffer.from(last);
  jumped.writeUIntLE(Date.now() + MINUTE_MS, 0, 6);
  await redis.hset(cellKey(0), 'last', jumped);
  await expectRefused();
  await redis.hset(cellKey(0), 'last', last);
  expect((await spin()).status).toBe(200);
});

test('measures the clock offset of each store as if its clock was read in the middle of the round trip', async () => {
  aheadMs = 1500;
  const offsets = async (): Promise<[of: string, seconds: number][]> => {
    const text = await (await fetch(`http://127.0.0.1:${service.running.metricsPort}/metrics`)).text();
    return [...text.matchAll(/^spindle_clock_offset_seconds\{of="([^"]+)"\} (\S+)$/gm)].map(
      ([, of, value]) => [of!, Number(value)],
    );
  };
  // The clock of this process is ahead, so the stores appear to be behind. A slow round trip is measured
  // again 10 s later.
  await until(async () => {
    const found = await offsets();
    return found.length === 2 && found.every(([, seconds]) => Math.abs(seconds + 1.5) < 0.2);
  }, 'both are measured');
  const redisUrl = new URL(stores.redisUrl);
  expect((await offsets()).map(([of]) => of).sort()).toEqual(['postgres', `redis:${redisUrl.host}`]);
});
