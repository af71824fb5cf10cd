/**
 * Tests how many failed authentications one client, or one network of many addresses, may cause, and how much
 * memory and time these may take.
 */
import { expect, test } from 'vitest';
import { AuthFailures, type CountFailure } from '../../../src/api/server/authFailures.js';
import { until } from '../../support/wait.js';

/** A store that counts failures as lua/countFailure.lua does. */
function counting() {
  const counts = new Map<string, number>();
  const count: CountFailure = async (client, limit) => {
    const next = Math.min(limit + 1, (counts.get(client) ?? 0) + 1);
    counts.set(client, next);
    return { count: next, timeMs: 0 };
  };
  return { counts, count };
}

test("bounds the failure counters of an IPv6 network of many /64s, and keeps other clients' counters separate", async () => {
  const { counts, count } = counting();
  const failures = new AuthFailures(count, 60, () => 0);
  await failures.count('192.0.2.1', false);
  for (let place = 0; place < 40_000; place++)
    await failures.count(`2001:db8:7:${place.toString(16)}::/64`, false);
  expect(counts.size).toBeLessThan(10_100);
  const flooding = await failures.count('2001:db8:7:ffff::/64', false);
  expect(flooding).toMatchObject({ client: '2001:db8:7::/48', isOver: true });
  for (const honest of ['192.0.2.1', '192.0.2.2', '2001:db8:8:1::/64'])
    expect(await failures.count(honest, false)).toMatchObject({ client: honest, isOver: false });
});

test('keeps room for another client while the delayed answers to many failed authentications of one client are pending', async () => {
  const failures = new AuthFailures(async () => ({ count: 5, timeMs: 0 }), 60);
  let isRefused = 0;
  const flood = Array.from({ length: 2000 }, () =>
    failures.count('192.0.2.1', true).then(({ isOver }) => {
      if (isOver) isRefused++;
    }),
  );
  await until(() => isRefused === 1984, 'all but sixteen are refused at once');
  expect(await failures.count('192.0.2.2', true)).toMatchObject({ isOver: false });
  await Promise.all(flood);
  expect(await failures.count('192.0.2.1', true)).toMatchObject({ isOver: false });
});
