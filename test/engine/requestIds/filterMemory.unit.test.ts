import { expect, test } from 'vitest';
import { foldedBytes } from '../../../src/domain/requestFilter.js';
import {
  coarsestBytes,
  FilterMemoryError,
  filterMegabytesByDefault,
  plannedFolds,
} from '../../../src/engine/requestIds/filterMemory.js';

const sizes = (...bytes: readonly number[]) => bytes.map((each) => ({ bytes: each, folds: 0 }));
const bytesAfter = (all: readonly { bytes: number }[], folds: readonly number[]): number =>
  all.reduce((sum, { bytes }, i) => sum + foldedBytes(bytes, folds[i]!), 0);

test('filters are folded until all fit into memory, the oldest first and each as few times as possible', () => {
  const four = sizes(6400, 6400, 6400, 6400);
  expect(plannedFolds(four, 25_600)).toEqual([0, 0, 0, 0]);
  expect(plannedFolds(four, 25_599)).toEqual([1, 0, 0, 0]);
  expect(plannedFolds(four, 12_800)).toEqual([1, 1, 1, 1]);
  expect(plannedFolds(four, 12_799)).toEqual([2, 1, 1, 1]);
  for (const bytesMax of [1e6, 25_000, 20_000, 9000, 1000, 300])
    expect(bytesAfter(four, plannedFolds(four, bytesMax))).toBeLessThanOrEqual(bytesMax);
  // A fold is never reversed. Filters that can't fit at all are folded to their minimum size.
  expect(plannedFolds([{ bytes: 6400, folds: 3 }, ...sizes(6400)], 1e6)).toEqual([3, 0]);
  expect(bytesAfter(four, plannedFolds(four, 1))).toBe(4 * 64);
});

test('a start needs memory for half the size of the filters, and the error names the setting to raise', () => {
  expect(coarsestBytes(sizes(6400, 64, 32))).toBe(3200 + 64 + 32);
  expect(new FilterMemoryError(500_000_000, 500e6, 268e6).message).toMatch(
    /^REQUEST_FILTERS_MAX_MB is 268, but the filters of 500000000 request ids take at least 500 MB\. Set it to at least 550/,
  );
});

test('by default, filters may use a quarter of the process memory', () => {
  expect(filterMegabytesByDefault(2 ** 30)).toBe(268);
  expect(filterMegabytesByDefault(1)).toBe(1);
  const bytes = filterMegabytesByDefault() * 4e6;
  expect(bytes).toBeGreaterThan(0);
});
