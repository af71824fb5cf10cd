/** Declares the commands of the group `rng`. */
import type { Command } from 'commander';
import { oneOf, wholeNumber } from './command.js';

const OF = { keystream: 'keystream', outcomes: 'outcomes', order: 'order', shoes: 'shoes' } as const;

export function addRngCommands(
  program: Command,
  { group, version }: { readonly group: string; readonly version: () => string },
): void {
  const rng = program.command('rng').description('random numbers').helpGroup(group);
  const test = rng
    .command('test')
    .description('statistical tests of the random number generator')
    .option('--of <WHAT>', `what is drawn: ${Object.keys(OF).join(', ')}`, oneOf(OF), OF.keystream)
    .option('--sheet <FILE>', 'with outcomes: the PAR sheet as uploaded, instead of that of the demo game')
    .option('--seed <HEX>', 'repeats a run: 32 bytes; without it the operating system gives a fresh one')
    .option('--size <N>', 'how many words, outcomes, tickets or shoes', wholeNumber)
    .addHelpText(
      'after',
      `
The code that draws what is dealt draws for the test, with seeds of its own: never those of a game. A p below 0.01 is drawn again
with four times the size and fails below 0.01; one below 0.01 divided by the number of tests fails at once. A generator without a
fault fails in some 1.3 % of runs. docs/compliance.md describes each test.
Exit status: 0 all passed, 1 one failed, 2 wrong usage.

Examples:
  spindle rng test --size 100000000
  spindle rng test --of outcomes --sheet sheet.json --json > report.json`,
    )
    .action(async () => {
      const { rngTest } = await import('./rng.js');
      process.exitCode = await rngTest({ ...test.optsWithGlobals(), version: version() });
    });
  const output = rng
    .command('export')
    .description('write random bytes as the tests read them')
    .requiredOption('--bytes <N>', 'how many', wholeNumber)
    .option('--seed <HEX>', 'the same seed gives the same bytes: 32 bytes')
    .addHelpText(
      'after',
      `
Writes to the standard output the keystream that outcomes are drawn from, for PractRand, dieharder or a laboratory.

Example:
  spindle rng export --bytes 68719476736 | RNG_test stdin32`,
    )
    .action(async () => {
      await (await import('./rng.js')).rngExport(output.optsWithGlobals());
    });
}
