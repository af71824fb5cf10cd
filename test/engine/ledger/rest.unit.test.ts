import { expect, test } from 'vitest';
import { pauseMs } from '../../../src/engine/ledger/flushPause.js';

test('while a response waits for the ledger, the flusher pauses for half the flush time, at most 10 ms', () => {
  expect(pauseMs({ isAwaited: true, roundMs: 30, flushMs: 2, games: 1 }, 100)).toBe(1);
  expect(pauseMs({ isAwaited: true, roundMs: 30, flushMs: 30, games: 1 }, 100)).toBe(10);
  expect(pauseMs({ isAwaited: true, roundMs: 200, flushMs: 0, games: 0 }, 100)).toBe(0);
});

test('while no response waits, flushes start at a fixed interval, but later if the previous flush took long', () => {
  expect(pauseMs({ isAwaited: false, roundMs: 30, flushMs: 10, games: 1 }, 100)).toBe(70);
  expect(pauseMs({ isAwaited: false, roundMs: 90, flushMs: 60, games: 1 }, 100)).toBe(120);
  expect(pauseMs({ isAwaited: false, roundMs: 900, flushMs: 800, games: 1 }, 100)).toBe(250);
  expect(pauseMs({ isAwaited: false, roundMs: 200, flushMs: 0, games: 0 }, 100)).toBe(0);
});

test('after a flush of many games the flusher pauses for 0.25 ms per game, at most 250 ms', () => {
  expect(pauseMs({ isAwaited: false, roundMs: 90, flushMs: 40, games: 100 }, 100)).toBe(80);
  expect(pauseMs({ isAwaited: false, roundMs: 90, flushMs: 40, games: 600 }, 100)).toBe(150);
  expect(pauseMs({ isAwaited: false, roundMs: 90, flushMs: 40, games: 5000 }, 100)).toBe(250);
  expect(pauseMs({ isAwaited: true, roundMs: 30, flushMs: 2, games: 1000 }, 100)).toBe(1);
});
