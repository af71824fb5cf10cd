/** One look answers all who ask for /readyz at a time, and never for longer than what was known at its begin. */
import { expect, test } from 'vitest';
import { sharedLook } from '../../src/engine/readiness.js';

test('a look is shared until a connection is lost, also one that is still under way', async () => {
  let looks = 0;
  let lost = 0;
  const look = sharedLook(
    () => Promise.resolve(++looks),
    () => lost,
  );
  expect(await Promise.all([look(), look()])).toEqual([1, 1]);
  expect(await look()).toBe(1);
  lost++;
  const underWay = look();
  lost++;
  expect(await Promise.all([underWay, look(), look()])).toEqual([2, 3, 3]);
});
