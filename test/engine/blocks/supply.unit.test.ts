/** Tests that outcomes of a game are made at the same pace at which they are dealt. */
import { expect, test } from 'vitest';
import {
  blockSizeFor,
  paceAfter,
  paceOfBlock,
  readyBlocks,
  runsLow,
} from '../../../src/engine/blocks/blockMaker.js';
import { retryMs } from '../../../src/engine/blocks/keeper.js';
import { learnDealtOut, newQueue, type Queue } from '../../../src/engine/blocks/queue.js';

test('a game that was idle is replenished at the pace of its first burst instead of its mean since the last spin', () => {
  expect(paceAfter(0, 5000, 3600)).toBe(20_000);
  expect(paceAfter(0, 5000, 0.25)).toBe(20_000);
});

test("two flushes that arrive together do not make a game's pace much higher", () => {
  expect(paceAfter(0, 1000, 0)).toBe(20_000);
});

test('the pace of a game that slows down halves every ten seconds', () => {
  expect(paceAfter(20_000, 1, 10)).toBe(10_000);
  expect(paceAfter(20_000, 1, 40)).toBe(1250);
});

test('a block that is dealt out within milliseconds is followed by a block that lasts for seconds', () => {
  expect(paceOfBlock(0, 2048, 0.05)).toBe(40_960);
  expect(paceOfBlock(0, 2048, 0.001)).toBe(40_960);
  expect(paceOfBlock(50_000, 2048, 0.1)).toBe(50_000);
});

test('a block that lasted for hours is followed by a block of the minimum size', () => {
  expect(blockSizeFor(paceOfBlock(0, 2048, 3600), 2048, 262_144)).toBe(2048);
});

/** Makes a queue with three blocks of 2,048 outcomes, none of which is committed. */
function youngQueue(): Queue {
  const reserve = { minReadyBlocks: 2 } as Queue['blockMaker']['reserve'];
  const supply = { reserve } as Queue['blockMaker'];
  const queue = newQueue(
    { gameId: 1, partnerId: 1 },
    { cell: 0, token: '1', fence: 1n } as Queue['lease'],
    supply,
  );
  queue.blocks = [0, 1, 2].map((block) => ({ fromIndex: block * 2048, toIndex: (block + 1) * 2048 }));
  queue.leaseEnd = 3 * 2048;
  queue.dealtOut = { at: 0, index: 0 };
  return queue;
}

test('replaces a block that is dealt out before the ledger has committed it', () => {
  const queue = youngQueue();
  expect(runsLow(queue, queue.blockMaker.reserve!)).toBe(false);
  learnDealtOut(queue, 2048, 60_000);
  expect(readyBlocks(queue)).toBe(2);
  expect(runsLow(queue, queue.blockMaker.reserve!)).toBe(true);
  expect(queue.nextIndex).toBe(0);
});

test('a queue that ran dry gets a block twice as large as its last block, however slow its pace seems', () => {
  const queue = youngQueue();
  learnDealtOut(queue, 3 * 2048, 60_000);
  expect(readyBlocks(queue)).toBe(0);
  expect(blockSizeFor(queue.pace, 2048, 262_144)).toBe(4096);
});

test('a late announcement of a block that is dealt out does not change the queue', () => {
  const queue = youngQueue();
  learnDealtOut(queue, 4096, 1000);
  const { pace, dealtIndex } = queue;
  learnDealtOut(queue, 2048, 2000);
  expect(queue).toMatchObject({ pace, dealtIndex });
});

test('doubles the wait before a queue is filled again after each consecutive failure, up to a limit', () => {
  for (let failures = 1; failures < 40; failures++) {
    const nominal = Math.min(8000, 250 * 2 ** (failures - 1));
    const ms = retryMs(failures);
    expect(ms).toBeLessThanOrEqual(nominal);
    expect(ms).toBeGreaterThan(nominal / 2);
  }
});
