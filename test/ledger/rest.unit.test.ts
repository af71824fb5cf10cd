import { expect, test } from 'vitest';
import { restMs } from '../../src/ledger/rest.js';

test('while somebody waits, a flush is followed by a rest half as long as it took, 10 ms at most', () => {
  expect(restMs({ isAwaited: true, roundMs: 30, bookedMs: 2 }, 100)).toBe(1);
  expect(restMs({ isAwaited: true, roundMs: 30, bookedMs: 30 }, 100)).toBe(10);
  expect(restMs({ isAwaited: true, roundMs: 200, bookedMs: 0 }, 100)).toBe(0);
});

test('where nobody waits, a round begins an interval after the one before, later after a long flush', () => {
  expect(restMs({ isAwaited: false, roundMs: 30, bookedMs: 10 }, 100)).toBe(70);
  expect(restMs({ isAwaited: false, roundMs: 90, bookedMs: 60 }, 100)).toBe(120);
  expect(restMs({ isAwaited: false, roundMs: 900, bookedMs: 800 }, 100)).toBe(250);
  expect(restMs({ isAwaited: false, roundMs: 200, bookedMs: 0 }, 100)).toBe(0);
});
