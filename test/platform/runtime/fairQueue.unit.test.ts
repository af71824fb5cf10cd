import { expect, test } from 'vitest';
import { FairQueue, QueueFullError, TurnLateError } from '../../../src/platform/runtime/fairQueue.js';

/** Makes jobs that last until the test ends them. */
function held() {
  const queue = new FairQueue({ atOnce: 12, atOnceOfOwner: 4, held: 1024, heldOfOwner: 128 });
  const ends: { partnerId: number; end: () => void }[] = [];
  const ask = (partnerId: number): Promise<string> =>
    queue
      .run(
        partnerId,
        () => new Promise<string>((resolve) => ends.push({ partnerId, end: () => resolve('told') })),
      )
      .catch((error: unknown) => (error instanceof QueueFullError ? 'full' : 'another error'));
  const underWay = (partnerId: number): number => ends.filter((each) => each.partnerId === partnerId).length;
  const endOne = async (partnerId: number): Promise<void> => {
    const place = ends.findIndex((each) => each.partnerId === partnerId);
    ends.splice(place, 1)[0]!.end();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { ask, underWay, endOne };
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
  const { ask, underWay, endOne } = held();
  const answers = Array.from({ length: 1100 }, (_, i) => ask(i % 11));
  const inAll = (): number =>
    Array.from({ length: 11 }, (_, partner) => underWay(partner)).reduce((a, b) => a + b, 0);
  expect(inAll()).toBe(12);
  expect(new Set(await Promise.all(answers.slice(1024)))).toEqual(new Set(['full']));
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
    performance.now() + 10,
  );
  await expect(second).rejects.toThrow(TurnLateError);
  end();
  await first;
  await queue.run(2, async () => {});
  expect(hasRun).toBe(false);
});
