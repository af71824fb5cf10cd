import { expect, test } from 'vitest';
import { pauseMs } from '../../../src/engine/ledger/flushPause.js';

test('while somebody waits, a flush is followed by a rest half as long as it took, 10 ms at most', () => {
  expect(pauseMs({ isAwaited: true, roundMs: 30, flushMs: 2, games: 1 }, 100)).toBe(1);
  expect(pauseMs({ isAwaited: true, roundMs: 30, flushMs: 30, games: 1 }, 100)).toBe(10);
  expect(pauseMs({ isAwaited: true, roundMs: 200, flushMs: 0, games: 0 }, 100)).toBe(0);
});

test('where nobody waits, a round begins an interval after the one before, later after a long flush', () => {
  expect(pauseMs({ isAwaited: false, roundMs: 30, flushMs: 10, games: 1 }, 100)).toBe(70);
  expect(pauseMs({ isAwaited: false, roundMs: 90, flushMs: 60, games: 1 }, 100)).toBe(120);
  expect(pauseMs({ isAwaited: false, roundMs: 900, flushMs: 800, games: 1 }, 100)).toBe(250);
  expect(pauseMs({ isAwaited: false, roundMs: 200, flushMs: 0, games: 0 }, 100)).toBe(0);
});

test('a flush of many games is followed by a rest of 0.25 ms for each, 250 ms at most', () => {
  expect(pauseMs({ isAwaited: false, roundMs: 90, flushMs: 40, games: 100 }, 100)).toBe(80);
  expect(pauseMs({ isAwaited: false, roundMs: 90, flushMs: 40, games: 600 }, 100)).toBe(150);
  expect(pauseMs({ isAwaited: false, roundMs: 90, flushMs: 40, games: 5000 }, 100)).toBe(250);
  expect(pauseMs({ isAwaited: true, roundMs: 30, flushMs: 2, games: 1000 }, 100)).toBe(1);
});
