/** No sheet holds up the threads that make blocks. */
import { test } from 'vitest';
import { compileDistribution } from '../../../src/domain/outcome.js';
import type { ParSheet } from '../../../src/domain/par.js';
import { expectRatioBelow, expectWithin } from '../../support/expectWithin.js';

/** Probabilities and weights that have no common divisor, from 1e-300 to 1. */
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

test('the cost to compile a sheet of extreme decimals grows no faster than the square of its classes', async () => {
  // As many classes as an upload holds.
  const sheets = [extremeSheet(90), extremeSheet(45)] as const;
  const cost = { of: () => compileDistribution(sheets[0]), against: () => compileDistribution(sheets[1]) };
  const costMs = await expectRatioBelow(cost, 2 * 2 ** 2, 'a sheet of 90 classes');
  expectWithin(costMs, 18);
});
