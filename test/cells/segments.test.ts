/** The segments of a cell's request ids in Redis: what binds, and who is refused once some are released. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { BatchItem } from '../../src/cells/batch.js';
import { cellKey } from '../../src/redis/keys.js';
import { cellToken, SPIN_STATUS } from '../../src/redis/records.js';
import { closeSegment, releaseSegment, requestSegments } from '../../src/redis/requestSegments.js';
import { BehindError, EpochError, OutrunError } from '../../src/redis/scriptErrors.js';
import { Scripts } from '../../src/redis/scripts.js';
import { freshStores } from '../setup/freshStores.js';
import { CELL, dealOnce, GAME_ID, item, OUTBOX_MAX } from '../support/dealing.js';
import { type OpenNodes, openNodes, rawRedis } from '../support/redis.js';
import { openedAt } from '../support/requestSegments.js';
import type { TestStores } from '../support/stores.js';

let stores: TestStores;
let redis: Redis;
let nodes: OpenNodes;
let scripts: Scripts;

beforeAll(async () => {
  stores = await freshStores();
  redis = rawRedis(stores.redisUrl);
  nodes = await openNodes(stores.redisUrl);
  scripts = new Scripts(nodes.nodes, { outboxMax: OUTBOX_MAX });
});
beforeEach(async () => {
  await redis.flushdb();
  await redis.hset(cellKey(CELL), openedAt(cellToken('1', nodes.node.serverId!)));
});
afterAll(async () => {
  redis.disconnect();
  nodes.close();
  await stores.drop();
});

const cell = () => nodes.nodes.cell(CELL);
const run = (items: BatchItem[], options = {}) => dealOnce(scripts, items, options);
const load = (from: number, ...codes: number[]) =>
  cell().loadBlock('1', GAME_ID, from, Buffer.from(Uint16Array.from(codes).buffer));
const everything = async () => {
  const state: Record<string, unknown> = {};
  for (const key of (await redis.keys('*')).sort())
    state[key] = (await redis.dumpBuffer(key)).toString('hex');
  return state;
};

describe('request ids that are released', () => {
  const owner = { cell: CELL, fence: 1n };
  const segmentsNow = async () => (await requestSegments(nodes.nodes, CELL))!;
  const reach = (id: bigint): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(id);
    return bytes;
  };

  test('every segment that is held binds; a caller whose filters reach less than was released is refused', async () => {
    await cell().claim({ fence: 1n });
    await load(0, ...Array.from({ length: 12 }, () => 0));
    await run([item({ requestId: 'oldest' })]);
    const oldest = await closeSegment(nodes.nodes, owner, await segmentsNow());
    await run([item({ requestId: 'middle' })]);
    const both = await closeSegment(nodes.nodes, owner, await segmentsNow());
    expect(both.closed).toHaveLength(2);
    // What somebody else has changed meanwhile is left as it is.
    expect((await closeSegment(nodes.nodes, owner, oldest)).bytes).toEqual(both.bytes);
    const repeated = [
      item({ requestId: 'oldest' }),
      item({ requestId: 'middle' }),
      item({ requestId: 'new' }),
    ];
    const { dealt, replay } = SPIN_STATUS;
    expect((await run(repeated)).statuses).toEqual([replay, replay, dealt]);

    const { releasedId } = await releaseSegment(nodes.nodes, owner, await segmentsNow());
    expect(releasedId).toBe(both.closed[0]);
    const before = await everything();
    for (const less of [undefined, reach(0n), reach(releasedId - 1n)])
      await expect(run(repeated, { reach: less })).rejects.toThrow(BehindError);
    expect(await everything()).toEqual(before);
    expect((await run(repeated, { reach: reach(releasedId) })).statuses).toEqual([dealt, replay, replay]);
    expect((await run([item({ requestId: 'far' })], { reach: reach(2n ** 63n - 1n) })).statuses).toEqual([
      dealt,
    ]);
    // Who binds nothing need not know.
    expect((await run([item()])).statuses).toEqual([dealt]);
  });

  test('only the owner closes and releases, and a cell without segments is not dealt from', async () => {
    await cell().claim({ fence: 2n });
    await expect(closeSegment(nodes.nodes, owner, await segmentsNow())).rejects.toThrow(OutrunError);
    await redis.hdel(cellKey(CELL), 'segments');
    await expect(run([item()])).rejects.toThrow(EpochError);
    // Version 1.3.0 looks for request ids elsewhere: what it presents is no token of this one, nor the other way round.
    await redis.hset(cellKey(CELL), openedAt(`1:${nodes.node.serverId}`));
    await expect(run([item()])).rejects.toThrow(EpochError);
  });
});
