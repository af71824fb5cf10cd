/** Outcomes are made at the pace at which a game is dealt. */
import { expect, test } from 'vitest';
import { paceAfter } from '../../src/blocks/supply.js';

test('a game that rested is supplied at the pace of its first burst, not at the mean since its last spin', () => {
  expect(paceAfter(0, 5000, 3600)).toBe(20_000);
  expect(paceAfter(0, 5000, 0.25)).toBe(20_000);
});

test('two flushes that come together are not taken for a much higher pace', () => {
  expect(paceAfter(0, 1000, 0)).toBe(20_000);
});

test('the pace of a game that slows down halves in ten seconds', () => {
  expect(paceAfter(20_000, 1, 10)).toBe(10_000);
  expect(paceAfter(20_000, 1, 40)).toBe(1250);
});
