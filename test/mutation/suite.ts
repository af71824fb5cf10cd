/** Faults put into a copy of the project, one at a time: the test that was written for each must fail, and pass without it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SuiteCopy, type SuiteTest } from './suiteCopy.js';
import { SUITE_MUTATIONS } from './suiteMutations.js';

/** What an expectation or a wait says that fails; whatever else goes wrong finds nothing. */
const FOUND = /^(AssertionError: |Error: promise resolved |Error: not within \d+ s: )/;

let copy: SuiteCopy;

beforeAll(async () => {
  copy = await SuiteCopy.make();
});
afterAll(() => copy.remove());

test('the tests pass where nothing is wrong', async () => {
  const tests = new Map<string, SuiteTest>(
    SUITE_MUTATIONS.map(({ foundBy }) => [`${foundBy.file} ${foundBy.test}`, foundBy]),
  );
  const results = await copy.run([...tests.values()]);
  expect(results.filter(({ isPassed }) => !isPassed)).toEqual([]);
}, 1_200_000);

test.each(SUITE_MUTATIONS.map((each) => [each.name, each] as const))('%s', async (_, { faults, foundBy }) => {
  const undo = await copy.plant(faults);
  try {
    const [result] = await copy.run([foundBy]);
    expect(result).toMatchObject({ isPassed: false, failure: expect.stringMatching(FOUND) });
  } finally {
    await undo();
  }
});
