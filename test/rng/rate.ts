/**
 * `npm run test:rng [-- KIND…]`: runs the battery of `spindle rng test` with 100 seeds for each kind of draws
 * at the smallest size. The battery must fail as often as its rule says (docs/compliance.md): 0.01 + 0.0001 ×
 * tests of all runs. It takes minutes on all processors, so it is not part of `npm test`.
 */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { DEMO_SHEET } from '../../src/domain/demoSheet.js';
import { checkParSheet } from '../../src/domain/par.js';
import { judge, type RandomTestVerdict } from '../../src/domain/rng/randomTest.js';
import { openThreads } from '../../src/engine/blocks/threads.js';
import { type Of, SUBJECTS, testsOf } from '../../workers/tallyDraws.js';

const SEEDS = 100;
/** Probability of rejecting a battery that fails exactly as often as its rule says. */
const CHANCE = 0.001;

const checked = checkParSheet(DEMO_SHEET);
if (!('sheet' in checked)) throw new Error('the sheet of the demo game is faulty');
const { sheet } = checked;
const threads = openThreads(
  new URL('../../workers/tallyDraws.js', import.meta.url).pathname,
  availableParallelism(),
);

const verdictOf = (of: Of, name: string): Promise<RandomTestVerdict> => {
  const seed = createHash('sha256').update(name).digest();
  return judge(testsOf(of, sheet), SUBJECTS[of].least, (draw, units) =>
    threads.run({ of, seed, draw, first: 0, units, sheet }),
  );
};

/** Returns the probability of at least `least` successes in n trials with probability p each. */
function tail(n: number, p: number, least: number): number {
  let term = (1 - p) ** n;
  let below = 0;
  for (let k = 0; k < least; k++) {
    below += term;
    term *= ((n - k) / (k + 1)) * (p / (1 - p));
  }
  return 1 - below;
}

async function rateOf(of: Of): Promise<boolean> {
  const started = performance.now();
  const names = Array.from({ length: SEEDS }, (_, i) => `rate ${of} ${i}`);
  const failed: string[] = [];
  const counts = { tests: 0, values: 0, suspect: 0 };
  await Promise.all(
    Array.from({ length: availableParallelism() }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const { tests, passed } = await verdictOf(of, name);
        counts.tests = tests.length;
        counts.values += tests.length;
        counts.suspect += tests.filter(({ p }) => p < 0.01).length;
        const faults = tests.filter((test) => !test.passed);
        if (!passed) failed.push(`${name}: ${faults.map((test) => `${test.name} p ${test.p}`).join(', ')}`);
      }
    }),
  );
  const expected = 0.01 + 0.0001 * counts.tests;
  const chance = tail(SEEDS, expected, failed.length);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  process.stdout.write(
    `${of}: ${failed.length} of ${SEEDS} runs failed (the rule: ${(100 * expected).toFixed(1)} %, so many or more by chance: ${chance.toFixed(3)}); ` +
      `${counts.suspect} of ${counts.values} first p below 0.01; ${SUBJECTS[of].least} ${SUBJECTS[of].unit} a run, ${seconds} s\n${failed.map((line) => `  ${line}\n`).join('')}`,
  );
  return chance >= CHANCE;
}

const given = process.argv.slice(2);
const all = Object.keys(SUBJECTS) as Of[];
const results: boolean[] = [];
for (const of of all) if (given.length === 0 || given.includes(of)) results.push(await rateOf(of));
await threads.destroy();
process.exitCode = results.every(Boolean) && results.length > 0 ? 0 : 1;
