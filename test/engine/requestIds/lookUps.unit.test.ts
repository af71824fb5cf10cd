import { expect, test } from 'vitest';
import { LookUps, LookUpsFullError } from '../../../src/engine/requestIds/lookUps.js';

/** Makes look-ups that last until the test ends them. */
function held() {
  const lookUps = new LookUps();
  const ends: { partnerId: number; end: () => void }[] = [];
  const ask = (partnerId: number): Promise<string> =>
    lookUps
      .run(
        partnerId,
        () => new Promise<string>((resolve) => ends.push({ partnerId, end: () => resolve('told') })),
      )
      .catch((error: unknown) => (error instanceof LookUpsFullError ? 'full' : 'another error'));
  const underWay = (partnerId: number): number => ends.filter((each) => each.partnerId === partnerId).length;
  const endOne = async (partnerId: number): Promise<void> => {
    const place = ends.findIndex((each) => each.partnerId === partnerId);
    ends.splice(place, 1)[0]!.end();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { ask, underWay, endOne };
}

test('a partner that repeats many old ids waits for its own look-ups, while other partners are served at once', async () => {
  const { ask, underWay, endOne } = held();
  const answers = Array.from({ length: 200 }, () => ask(1));
  expect(underWay(1)).toBe(4);
  // 128 look-ups of a partner are queued, and further look-ups are refused without a query of the ledger.
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

test('look-ups of all partners share a limit, and the longest-waiting partner below its own limit is next', async () => {
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
