/**
 * Puts one fault at a time into a copy of the project. The test that was written for the fault must fail with
 * it and pass without it.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SuiteCopy, type SuiteTest } from './suiteCopy.js';
import { SUITE_MUTATIONS } from './suiteMutations.js';

/** Messages of a failed expectation or wait. Any other error does not count as a detection. */
const FOUND = /^(AssertionError: |Error: promise resolved |Error: not within \d+ s: )/;

let copy: SuiteCopy;

beforeAll(async () => {
  copy = await SuiteCopy.make();
});
afterAll(() => copy.remove());

test('the tests that must find a fault pass on sources without a fault', async () => {
  const tests = new Map<string, SuiteTest>(
    SUITE_MUTATIONS.map(({ foundBy }) => [`${foundBy.file} ${foundBy.test}`, foundBy]),
  );
  const results = await copy.run([...tests.values()]);
  expect(results.filter(({ isPassed }) => !isPassed)).toEqual([]);
}, 1_200_000);

test.each(SUITE_MUTATIONS.map((each) => [each.name, each] as const))(
  'the test written for this fault fails on sources with it: %s',
  async (_, { faults, foundBy }) => {
    const undo = await copy.plant(faults);
    try {
      const [result] = await copy.run([foundBy]);
      expect(result).toMatchObject({ isPassed: false, failure: expect.stringMatching(FOUND) });
    } finally {
      await undo();
    }
  },
);
