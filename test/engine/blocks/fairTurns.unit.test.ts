/** Tests that the blocks of one partner never wait for all blocks of another partner. */
import { expect, test } from 'vitest';
import { FairTurns } from '../../../src/engine/blocks/fairTurns.js';

/** Runs jobs one at a time and returns their names in the order in which they started. */
async function orderOf(
  works: readonly (readonly [partnerId: number, name: string, secondsLeft: number, elapsedMs: number])[],
): Promise<string[]> {
  const turns = new FairTurns(1);
  const began: string[] = [];
  await Promise.all(
    works.map(([partnerId, name, secondsLeft, elapsedMs]) =>
      turns.run(
        partnerId,
        () => secondsLeft,
        async () => {
          began.push(name);
          return { elapsedMs };
        },
      ),
    ),
  );
  return began;
}

test('a partner with eighty slow games delays the block of another partner by only one block', async () => {
  const slow = Array.from({ length: 80 }, (_, i) => [1, `slow ${i}`, 0, 300] as const);
  const order = await orderOf([...slow, [2, 'quick', 5, 1]]);
  expect(order.indexOf('quick')).toBe(1);
  expect(order).toHaveLength(81);
});

test('partners share the block thread in proportion to the time that their blocks take', async () => {
  const slow = Array.from({ length: 10 }, (_, i) => [1, `slow ${i}`, 0, 100] as const);
  const quick = Array.from({ length: 10 }, (_, i) => [2, `quick ${i}`, 0, 10] as const);
  const order = await orderOf([...slow, ...quick]);
  // All of the quick blocks together take as long as one slow block.
  expect(order.slice(0, 12).filter((name) => name.startsWith('quick'))).toHaveLength(10);
});

test('the next block of a partner is made for the game whose queue runs dry first', async () => {
  const order = await orderOf([
    [1, 'first', 9, 1],
    [1, 'last', 3, 1],
    [1, 'dry', 0, 1],
    [1, 'soon', 1, 1],
  ]);
  expect(order).toEqual(['first', 'dry', 'soon', 'last']);
});

test('a block job that fails releases its turn', async () => {
  const turns = new FairTurns(1);
  const failed = turns.run(
    1,
    () => 0,
    () => Promise.reject(new Error('failed')),
  );
  await expect(failed).rejects.toThrow('failed');
  expect(
    await turns.run(
      1,
      () => 0,
      async () => ({ elapsedMs: 1 }),
    ),
  ).toEqual({ elapsedMs: 1 });
});
