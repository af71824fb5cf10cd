/** Tests that compiling a PAR sheet never occupies a block-making thread for long. */
import { test } from 'vitest';
import { compileDistribution } from '../../../src/domain/outcome.js';
import type { ParSheet } from '../../../src/domain/par.js';
import { expectRatioBelow, expectWithin } from '../../support/expectWithin.js';

/** Makes a PAR sheet with probabilities from 1e-300 to 1 and with weights that have no common divisor. */
function extremeSheet(classes: number): ParSheet {
  const combinations = Array.from({ length: classes }, (_, i) => ({
    reelSymbols: ['A'],
    comboString: 'A',
    payMultiplier: i < 2 ? 0 : Math.floor(i / 2),
    comboProbability: (1.234567890123457 + i / 97) * 10 ** -((i * 37) % 301),
    tierId: i < 2 ? 0 : 1,
    displayWeight: (1.234567890123457 + i / 89) * 10 ** ((i * 41) % 301),
  }));
  return { combinations } as unknown as ParSheet;
}

test('the cost to compile a PAR sheet of extreme decimals grows at most with the square of its number of classes', async () => {
  // An uploaded PAR sheet may have at most 90 classes.
  const sheets = [extremeSheet(90), extremeSheet(45)] as const;
  const cost = { of: () => compileDistribution(sheets[0]), against: () => compileDistribution(sheets[1]) };
  const costMs = await expectRatioBelow(cost, 2 * 2 ** 2, 'a sheet of 90 classes');
  expectWithin(costMs, 18);
});
