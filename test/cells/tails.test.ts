/** What an outcome has beside its CORE: it is bound, replayed and kept whatever its length. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type BatchItem, BatchReply } from '../../src/cells/batch.js';
import { cellKey, playersKey } from '../../src/redis/keys.js';
import { CORE_BYTES, cellToken, readPlayer, SPIN_STATUS } from '../../src/redis/records.js';
import { Scripts } from '../../src/redis/scripts.js';
import { freshStores } from '../setup/freshStores.js';
import { CELL, dealOnce, GAME_ID, item, OUTBOX_MAX, watchedLua } from '../support/dealing.js';
import { type OpenNodes, openNodes, rawRedis } from '../support/redis.js';
import type { TestStores } from '../support/stores.js';

let stores: TestStores;
let redis: Redis;
let nodes: OpenNodes;
let scripts: Scripts;

beforeAll(async () => {
  stores = await freshStores();
  redis = rawRedis(stores.redisUrl);
  nodes = await openNodes(stores.redisUrl);
  scripts = new Scripts(nodes.nodes, { idempotencyPeriodSeconds: 86_400, outboxMax: OUTBOX_MAX });
});
beforeEach(async () => {
  await redis.flushdb();
  await redis.hset(cellKey(CELL), 'epoch', cellToken('1', nodes.node.serverId!));
});
afterAll(async () => {
  redis.disconnect();
  nodes.close();
  await stores.drop();
});

/** Flags without a meaning, and more than there is today. */
const TAIL = Buffer.from('\x80 and more', 'latin1');

const run = (items: BatchItem[], options = {}) => dealOnce(scripts, items, options);
const load = (from: number, ...codes: number[]) =>
  nodes.nodes.cell(CELL).loadBlock('1', GAME_ID, from, Buffer.from(Uint16Array.from(codes).buffer));

const boundOf = async (playerId: string): Promise<Buffer> => {
  const period = (await redis.keys(`{c${CELL}}:idem:*`))[0]!;
  const values = await redis.hvalsBuffer(period);
  return values.find((value) => value.includes(playerId))!;
};

/** Scripts whose spins have a tail: the outcome's index, `length` characters long. */
async function withTails<T>(length: number, use: () => Promise<T>): Promise<T> {
  const dir = watchedLua();
  const file = join(dir, 'include', 'dealSpin.lua');
  const parts = readFileSync(file, 'utf8').split("tail = ''");
  expect(parts).toHaveLength(2);
  writeFileSync(file, parts.join(`tail = 'tail of ' .. index; tail = tail .. rep('.', ${length} - #tail)`));
  const before = scripts;
  const own = await openNodes(stores.redisUrl, dir);
  scripts = new Scripts(own.nodes, { idempotencyPeriodSeconds: 86_400, outboxMax: OUTBOX_MAX });
  try {
    return await use();
  } finally {
    scripts = before;
    own.close();
    rmSync(dir, { recursive: true });
  }
}
const tail = (index: number, length: number): string => `tail of ${index}`.padEnd(length, '.');

test.each([9, 1000, 60_000])(
  'is bound, and repeated by replays and by the stored reply: %i bytes',
  async (length) => {
    await load(0, 1, 2, 0);
    const dealing = [item({ requestId: 'a' }), item({ requestId: 'a' }), item()];
    const first = await withTails(length, async () => {
      const dealt = await run(dealing, { operation: 500 });
      expect((await run(dealing, { operation: 500 })).buffer).toEqual(dealt.buffer);
      return dealt;
    });
    expect(first.statuses).toEqual([SPIN_STATUS.dealt, SPIN_STATUS.replay, SPIN_STATUS.dealt]);
    expect(first.tails).toEqual([tail(0, length), tail(0, length), tail(1, length)]);
    // The operation as it is today repeats what is bound, too, and gives its own spins none.
    const later = await run([item(), item({ requestId: 'a' }), item({ requestId: 'a', playerId: 'bob' })], {
      operation: 501,
    });
    expect(later.statuses).toEqual([SPIN_STATUS.dealt, SPIN_STATUS.replay, SPIN_STATUS.conflict]);
    expect(later.tails).toEqual([undefined, tail(0, length), undefined]);
    expect(later.cores[1]).toEqual(first.cores[0]);
    expect((await boundOf('tail of 0')).length).toBe(28 + length);
  },
);

test('costs a reply without one no byte', async () => {
  await load(0, 1);
  const { buffer, tails } = await run([item({ requestId: 'a' })]);
  expect(buffer.length).toBe(6 + 8 + 1 + CORE_BYTES);
  expect(tails).toEqual([undefined]);
});

test('stays with a player through spins, whatever its length', async () => {
  await load(0, 1, 2, 0);
  await run([item()]);
  const record = (await redis.hgetBuffer(playersKey(CELL), '7:alice'))!;
  expect(record).toHaveLength(28);
  await redis.hset(playersKey(CELL), '7:alice', Buffer.concat([record, TAIL]));
  expect((await run([item()])).statuses).toEqual([SPIN_STATUS.dealt]);
  const after = (await redis.hgetBuffer(playersKey(CELL), '7:alice'))!;
  expect(after.subarray(28)).toEqual(TAIL);
  expect(readPlayer(after)).toMatchObject({ entries: 3 });
});

test('that is cut off is not taken for a whole reply', async () => {
  await load(0, 1);
  const { buffer } = await withTails(40, () => run([item()]));
  expect(() => new BatchReply(buffer.subarray(0, -1), 1, 1)).toThrow('ends within a tail');
  expect(() => new BatchReply(buffer.subarray(0, 20), 1, 1)).toThrow('at least 33 were expected');
});
