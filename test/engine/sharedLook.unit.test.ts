/**
 * Tests that concurrent requests of /statusz share one check, and that a check is never used after a
 * connection was lost.
 */
import { expect, test } from 'vitest';
import { sharedLook } from '../../src/engine/problems.js';

test('callers share a readiness check until a connection is lost, even while the check is in progress', async () => {
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
