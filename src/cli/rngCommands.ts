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
    .description('run statistical tests of the random number generator')
    .option('--of <WHAT>', `kind of draws to test: ${Object.keys(OF).join(', ')}`, oneOf(OF), OF.keystream)
    .option(
      '--sheet <FILE>',
      'PAR sheet as uploaded, for --of outcomes (default: the sheet of the demo game)',
    )
    .option('--seed <HEX>', 'seed of 32 bytes, to repeat a run (default: a random seed)')
    .option('--size <N>', 'number of words, outcomes, tickets or shoes', wholeNumber)
    .addHelpText(
      'after',
      `
The tests use the code that draws the outcomes of games, with seeds of their own and never with a seed of a game. A test with p
below 0.01 is repeated with four times the size, and fails if p is below 0.01 again. A test with p below 0.01 divided by the
number of tests fails at once. A correct generator fails in about 1.3 % of runs. docs/compliance.md describes each test.
Exit status: 0 if all tests passed, 1 if one failed, 2 for wrong usage.

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
    .description('write the random bytes that the tests use')
    .requiredOption('--bytes <N>', 'number of bytes', wholeNumber)
    .option('--seed <HEX>', 'seed of 32 bytes; the same seed gives the same bytes (default: a random seed)')
    .addHelpText(
      'after',
      `
Writes the keystream that outcomes are drawn from to standard output, for PractRand, dieharder or a test laboratory.

Example:
  spindle rng export --bytes 68719476736 | RNG_test stdin32`,
    )
    .action(async () => {
      await (await import('./rng.js')).rngExport(output.optsWithGlobals());
    });
}
