import { expect, test } from 'vitest';
import { FILLING, MAKING } from '../../../src/engine/blocks/keeper.js';
import {
  type FairLimits,
  FairQueue,
  QueueFullError,
  TurnLateError,
} from '../../../src/platform/runtime/fairQueue.js';

/** Makes jobs that last until the test ends them. */
function held(limits: FairLimits = { atOnce: 12, atOnceOfOwner: 4, held: 1024, heldOfOwner: 128 }) {
  const queue = new FairQueue(limits);
  const running: { owner: number; name: number; end: () => void }[] = [];
  const order: number[] = [];
  const ask = (owner: number, name = 0, rank?: () => number): Promise<string> => {
    const job = (): Promise<string> => {
      order.push(name);
      return new Promise((resolve) => running.push({ owner, name, end: () => resolve('told') }));
    };
    return queue
      .run(owner, job, rank && { rank })
      .catch((error: unknown) => (error instanceof QueueFullError ? 'full' : 'another error'));
  };
  const underWay = (owner: number): number => running.filter((each) => each.owner === owner).length;
  const endOne = async (owner: number): Promise<void> => {
    const place = running.findIndex((each) => each.owner === owner);
    running.splice(place, 1)[0]!.end();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { ask, underWay, endOne, running, order };
}

test('an owner with many jobs waits for its own, while the job of another starts at once', async () => {
  const { ask, underWay, endOne } = held();
  const answers = Array.from({ length: 200 }, () => ask(1));
  expect(underWay(1)).toBe(4);
  // 128 jobs of an owner are held, and further ones are refused.
  const refused = await Promise.all(answers.slice(128));
  expect(new Set(refused)).toEqual(new Set(['full']));
  const other = ask(2);
  expect(underWay(2)).toBe(1);
  await endOne(2);
  expect(await other).toBe('told');
  for (let i = 0; i < 128; i++) {
    expect(underWay(1)).toBe(Math.min(4, 128 - i));
    await endOne(1);
  }
  expect(new Set(await Promise.all(answers.slice(0, 128)))).toEqual(new Set(['told']));
  const later = ask(1);
  await endOne(1);
  expect(await later).toBe('told');
});

test('the next job to start is the one that has waited longest of an owner below its limit', async () => {
  const { ask, underWay, endOne, order } = held();
  const answers = Array.from({ length: 1100 }, (_, i) => ask(i % 11, i));
  const inAll = (): number =>
    Array.from({ length: 11 }, (_, partner) => underWay(partner)).reduce((a, b) => a + b, 0);
  expect(inAll()).toBe(12);
  expect(new Set(await Promise.all(answers.slice(1024)))).toEqual(new Set(['full']));
  // Owner 1 ends a job first, so the longest waiting job of all is next.
  await endOne(1);
  expect(order).toEqual(Array.from({ length: 13 }, (_, i) => i));
  while (inAll() > 0) {
    const busiest = Array.from({ length: 11 }, (_, partner) => underWay(partner));
    expect(Math.max(...busiest)).toBeLessThanOrEqual(4);
    await endOne(busiest.findIndex((count) => count > 0));
  }
  expect(new Set(await Promise.all(answers.slice(0, 1024)))).toEqual(new Set(['told']));
});

test('a job whose turn does not come by its deadline is refused and never runs', async () => {
  const queue = new FairQueue({ atOnce: 1, atOnceOfOwner: 1, held: 9, heldOfOwner: 9 });
  let end = (): void => {};
  const first = queue.run(
    1,
    () =>
      new Promise<void>((resolve) => {
        end = resolve;
      }),
  );
  let hasRun = false;
  const second = queue.run(
    2,
    async () => {
      hasRun = true;
    },
    { deadline: performance.now() + 10 },
  );
  await expect(second).rejects.toThrow(TurnLateError);
  end();
  await first;
  await queue.run(2, async () => {});
  expect(hasRun).toBe(false);
});

test('the block keeper fills each of 1,300 queues once, and only so many at once, for any number of partners', async () => {
  for (const partners of [1, 10, 1300]) {
    const { ask, underWay, endOne, running, order } = held(FILLING);
    const all = Array.from({ length: 1300 }, (_, i) => ask(i % partners, i));
    let [total, partner] = [0, 0];
    while (running.length > 0) {
      total = Math.max(total, running.length);
      partner = Math.max(partner, underWay(running[0]!.owner));
      await endOne(running[0]!.owner);
    }
    await Promise.all(all);
    expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 1300 }, (_, i) => i));
    expect(total).toBe(partners === 1 ? 16 : 64);
    expect(partner).toBeLessThanOrEqual(16);
  }
});

test('a free turn goes to the partner with the fewest queues being filled, for its game that runs dry first', async () => {
  const { ask, endOne, running, order } = held(FILLING);
  for (let i = 0; i < 100; i++) void ask(i % 4, i);
  expect(running.length).toBe(64);
  void ask(9, 200, () => 100);
  void ask(9, 201, () => 10);
  await endOne(0);
  expect(order.at(-1)).toBe(201);
});

/** Makes blocks one at a time and returns their names in the order in which they started. */
async function orderOf(
  works: readonly (readonly [partnerId: number, name: string, secondsLeft: number, elapsedMs: number])[],
): Promise<string[]> {
  const turns = new FairQueue({ ...MAKING.limits(1), atOnce: 1 });
  const began: string[] = [];
  await Promise.all(
    works.map(([partnerId, name, secondsLeft, elapsedMs]) => {
      const make = async () => {
        began.push(name);
        return { elapsedMs };
      };
      return turns.run(partnerId, make, { rank: () => secondsLeft, cost: MAKING.cost });
    }),
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

test('a job that fails releases its turn', async () => {
  const turns = new FairQueue({ atOnce: 1 });
  const failed = turns.run(1, () => Promise.reject(new Error('failed')));
  const waiting = turns.run(2, async () => 'told');
  await expect(failed).rejects.toThrow('failed');
  expect(await waiting).toBe('told');
});
