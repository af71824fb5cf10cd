/** The faults of the mutation tests follow the code: what each replaces stands in its file exactly once, and each test that must find one is there. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { CLUSTER_MUTATIONS } from '../mutation/clusterMutations.js';
import { COMMUNAL_MUTATIONS } from '../mutation/communalMutations.js';
import { DEALING_MUTATIONS, FOUND_BY_THE_MODEL } from '../mutation/dealingMutations.js';
import { MOVE_MUTATIONS } from '../mutation/moveMutations.js';
import { withFault } from '../mutation/mutant.js';
import { RELEASE_MUTATIONS } from '../mutation/releaseMutations.js';
import { ROUND_MUTATIONS } from '../mutation/roundMutations.js';
import { escaped } from '../mutation/suiteCopy.js';
import { SUITE_MUTATIONS } from '../mutation/suiteMutations.js';
import { ROOT } from '../support/root.js';

/** Whatever the project is built for, the text of a statement is the same. */
const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };

/** A file as it is in a build, made here: the build need not be there. */
async function built(file: string): Promise<string> {
  const source = file.replace(/^dist\/(.*)\.js$/, '$1.ts');
  const text = await readFile(join(ROOT, source), 'utf8');
  if (source === file) return text;
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

test('each fault fits the code', async () => {
  const mutations = [DEALING_MUTATIONS, RELEASE_MUTATIONS, MOVE_MUTATIONS, COMMUNAL_MUTATIONS];
  const others = [CLUSTER_MUTATIONS, ROUND_MUTATIONS, SUITE_MUTATIONS];
  const faults = [...mutations.flat(), ...others.flat()].map((mutation) => mutation.faults);
  const misfits: string[] = [];
  for (const list of [...faults, FOUND_BY_THE_MODEL.map(({ fault }) => fault)]) {
    for (const fault of list) {
      try {
        withFault(await built(fault.file), fault);
      } catch (error) {
        misfits.push((error as Error).message);
      }
    }
  }
  expect(misfits).toEqual([]);
});

test('each test that must find a fault is in its file', async () => {
  for (const { foundBy } of SUITE_MUTATIONS) {
    const text = await readFile(join(ROOT, foundBy.file), 'utf8');
    // Of a test that is there for several values, `%s` is one of them.
    const titles = [...text.matchAll(/(['"])(.{10,}?)\1/g)].map(
      ([, , title]) => new RegExp(`(^| )${escaped(title!).replaceAll('%s', '.+')}$`),
    );
    expect(titles.filter((title) => title.test(foundBy.test)).length, foundBy.test).toBe(1);
  }
});
