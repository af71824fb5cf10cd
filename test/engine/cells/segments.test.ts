/**
 * Tests the segments of a cell's request ids in Redis: which ids are bound, and which callers are refused
 * after a release.
 */
import { describe, expect, test } from 'vitest';
import { cellKey } from '../../../src/engine/redis/keys.js';
import { closeSegment, releaseSegment, requestSegments } from '../../../src/engine/redis/requestSegments.js';
import { BehindError, EpochError, OutrunError } from '../../../src/engine/redis/scriptErrors.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { CELL, item } from '../../support/dealing.js';
import { openedAt } from '../../support/requestSegments.js';
import { openedCell } from './openedCell.js';

const opened = openedCell();

const cell = () => opened.nodes.nodes.cell(CELL);
const everything = async () => {
  const state: Record<string, unknown> = {};
  for (const key of (await opened.redis.keys('*')).sort())
    state[key] = (await opened.redis.dumpBuffer(key)).toString('hex');
  return state;
};

describe('request ids that are released from Redis', () => {
  const owner = { cell: CELL, fence: 1n };
  const segmentsNow = async () => (await requestSegments(opened.nodes.nodes, CELL))!;
  const reach = (id: bigint): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(id);
    return bytes;
  };

  test('request ids in each segment of Redis stay bound, and a caller whose filters lack released ids is refused', async () => {
    await cell().claim({ fence: 1n });
    await opened.load(0, ...Array.from({ length: 12 }, () => 0));
    await opened.run([item({ requestId: 'oldest' })]);
    const oldest = await closeSegment(opened.nodes.nodes, owner, await segmentsNow());
    await opened.run([item({ requestId: 'middle' })]);
    const both = await closeSegment(opened.nodes.nodes, owner, await segmentsNow());
    expect(both.closed).toHaveLength(2);
    // A caller that read the segments before their last change can't close a segment.
    expect((await closeSegment(opened.nodes.nodes, owner, oldest)).bytes).toEqual(both.bytes);
    const repeated = [
      item({ requestId: 'oldest' }),
      item({ requestId: 'middle' }),
      item({ requestId: 'new' }),
    ];
    const { dealt, replay } = SPIN_STATUS;
    expect((await opened.run(repeated)).statuses).toEqual([replay, replay, dealt]);

    const { releasedId } = await releaseSegment(opened.nodes.nodes, owner, await segmentsNow());
    expect(releasedId).toBe(both.closed[0]);
    const before = await everything();
    for (const less of [undefined, reach(0n), reach(releasedId - 1n)])
      await expect(opened.run(repeated, { reach: less })).rejects.toThrow(BehindError);
    expect(await everything()).toEqual(before);
    expect((await opened.run(repeated, { reach: reach(releasedId) })).statuses).toEqual([
      dealt,
      replay,
      replay,
    ]);
    expect(
      (await opened.run([item({ requestId: 'far' })], { reach: reach(2n ** 63n - 1n) })).statuses,
    ).toEqual([dealt]);
    // A spin without a requestId needs no filters.
    expect((await opened.run([item()])).statuses).toEqual([dealt]);
  });

  test('an empty segment ends where the previous one ended, and the watermark of released ids never goes back', async () => {
    await cell().claim({ fence: 1n });
    await opened.load(0, 0);
    expect((await closeSegment(opened.nodes.nodes, owner, await segmentsNow())).closed).toEqual([0n]);
    await opened.run([item({ requestId: 'only' })]);
    const { closed } = await closeSegment(opened.nodes.nodes, owner, await segmentsNow());
    expect(closed[1]).toBeGreaterThan(0n);
    const again = await closeSegment(opened.nodes.nodes, owner, await segmentsNow());
    expect(again.closed).toEqual([...closed, closed[1]]);
    for (const releasedId of [0n, closed[1], closed[1]])
      expect(await releaseSegment(opened.nodes.nodes, owner, await segmentsNow())).toMatchObject({
        releasedId,
      });
    await opened.redis.hdel(cellKey(CELL), 'last');
    expect((await closeSegment(opened.nodes.nodes, owner, await segmentsNow())).closed).toEqual([closed[1]]);
  });

  test("only a cell's owner closes and releases segments, and a cell without segments deals nothing", async () => {
    await cell().claim({ fence: 2n });
    await expect(closeSegment(opened.nodes.nodes, owner, await segmentsNow())).rejects.toThrow(OutrunError);
    await opened.redis.hdel(cellKey(CELL), 'segments');
    await expect(opened.run([item()])).rejects.toThrow(EpochError);
    // The token and the field `segments` must both contain the name of the segments. If only one of them
    // does, the call is refused.
    await opened.redis.hset(cellKey(CELL), openedAt(`1:${opened.nodes.node.serverId}`));
    await expect(opened.run([item()])).rejects.toThrow(EpochError);
  });
});
