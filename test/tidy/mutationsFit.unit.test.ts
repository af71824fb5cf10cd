/**
 * Checks that the faults of the mutation tests match the code: the text that each fault replaces occurs
 * exactly once in its file, and each test that must find a fault exists.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CLUSTER_MUTATIONS } from '../mutation/clusterMutations.js';
import { COMMUNAL_MUTATIONS } from '../mutation/communalMutations.js';
import { DEALING_MUTATIONS, FOUND_BY_THE_MODEL } from '../mutation/dealingMutations.js';
import { MOVE_MUTATIONS } from '../mutation/moveMutations.js';
import { textOf, withFault } from '../mutation/mutant.js';
import { RELEASE_MUTATIONS } from '../mutation/releaseMutations.js';
import { ROUND_MUTATIONS } from '../mutation/roundMutations.js';
import { escaped } from '../mutation/suiteCopy.js';
import { SUITE_MUTATIONS } from '../mutation/suiteMutations.js';
import { ROOT } from '../support/root.js';

test('the text that each mutation replaces occurs exactly once in its file', async () => {
  const mutations = [DEALING_MUTATIONS, RELEASE_MUTATIONS, MOVE_MUTATIONS, COMMUNAL_MUTATIONS];
  const others = [CLUSTER_MUTATIONS, ROUND_MUTATIONS, SUITE_MUTATIONS];
  const faults = [...mutations.flat(), ...others.flat()].map((mutation) => mutation.faults);
  const misfits: string[] = [];
  for (const list of [...faults, FOUND_BY_THE_MODEL.map(({ fault }) => fault)]) {
    for (const fault of list) {
      try {
        withFault(await textOf(fault.file), fault);
      } catch (error) {
        misfits.push((error as Error).message);
      }
    }
  }
  expect(misfits).toEqual([]);
});

test('each test that must find a mutation exists in its file', async () => {
  for (const { foundBy } of SUITE_MUTATIONS) {
    const text = await readFile(join(ROOT, foundBy.file), 'utf8');
    // In a test with several cases `%s` stands for the value of one case.
    const titles = [...text.matchAll(/(['"])(.{10,}?)\1/g)].map(
      ([, , title]) => new RegExp(`(^| )${escaped(title!).replaceAll('%s', '.+')}$`),
    );
    expect(titles.filter((title) => title.test(foundBy.test)).length, foundBy.test).toBe(1);
  }
});
