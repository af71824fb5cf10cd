import { expect, test } from 'vitest';
import { RequestPairs } from '../../../src/domain/requestPairs.js';
import { CommittedRequestIds } from '../../../src/engine/requestIds/committedRequestIds.js';

/** Returns a (hash, entry) pair for each of these entries, with a hash that equals the entry's id. */
const pairsOf = (...ids: number[]): RequestPairs => {
  const pairs = new RequestPairs(1);
  for (const id of ids) pairs.add(id, 0, 0, id);
  return pairs;
};
const idsOf = (pairs: RequestPairs | undefined): number[] | undefined =>
  pairs && Array.from({ length: pairs.count }, (_, i) => pairs.slice(i, i + 1)[3]!);

test('request ids that were committed without a gap are returned once, and later ids are kept', () => {
  const booked = new CommittedRequestIds();
  booked.add(0, 10n, 20n, pairsOf(12, 20));
  booked.add(1, 5n, 30n, pairsOf(7));
  booked.add(0, 20n, 25n, pairsOf());
  booked.add(0, 25n, 40n, pairsOf(31, 32, 40));
  expect(booked.watermarkOf(0)).toBe(40n);
  expect(idsOf(booked.take(0, 10n, 31n))).toEqual([12, 20, 31]);
  expect(booked.take(0, 10n, 31n)).toBe(undefined);
  booked.add(0, 40n, 50n, pairsOf(50));
  // Another owner has already written the ids before 32.
  expect(idsOf(booked.take(0, 32n, 45n))).toEqual([40]);
  expect(idsOf(booked.take(0, 45n, 50n))).toEqual([50]);
  expect(idsOf(booked.take(1, 5n, 30n))).toEqual([7]);
});

test('no request ids are returned for a range with a gap before, within or after it', () => {
  const booked = new CommittedRequestIds();
  booked.add(0, 10n, 20n, pairsOf(12));
  expect(booked.take(0, 9n, 20n)).toBe(undefined);
  expect(booked.take(0, 10n, 21n)).toBe(undefined);
  expect(booked.take(1, 10n, 20n)).toBe(undefined);
  booked.add(0, 21n, 30n, pairsOf(25));
  expect(booked.take(0, 10n, 30n)).toBe(undefined);
  expect(idsOf(booked.take(0, 21n, 30n))).toEqual([25]);
  booked.add(0, 30n, 35n, pairsOf(33));
  booked.forget(0);
  expect([booked.watermarkOf(0), booked.take(0, 30n, 35n)]).toEqual([undefined, undefined]);
});

test('committed request ids are due to be written at one million, dropped at two million, and counted correctly', () => {
  const booked = new CommittedRequestIds();
  const many = new RequestPairs(2 ** 19);
  many.count = 2 ** 19;
  booked.add(0, 0n, 1n, many);
  expect(booked.areDue).toBe(false);
  booked.add(1, 0n, 1n, many);
  expect(booked.areDue).toBe(true);
  booked.add(2, 0n, 1n, many);
  booked.add(2, 1n, 2n, many);
  booked.add(2, 2n, 3n, pairsOf(3));
  expect([0, 1, 2].map((cell) => booked.watermarkOf(cell))).toEqual([1n, 1n, 3n]);
  expect(idsOf(booked.take(2, 2n, 3n))).toEqual([3]);
  expect(booked.areDue).toBe(true);
  booked.forget(1);
  expect(booked.areDue).toBe(false);
});
