/** No sheet holds up the threads that make blocks. */
import { expect, test } from 'vitest';
import { compileDistribution } from '../../src/domain/outcome.js';
import type { ParSheet } from '../../src/domain/par.js';
import { expectWithin, leastCostMs } from '../support/expectWithin.js';

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
  const costMs = await leastCostMs(() => compileDistribution(extremeSheet(90)));
  const smallCostMs = await leastCostMs(() => compileDistribution(extremeSheet(45)));
  expect(costMs).toBeLessThan(2 * 2 ** 2 * smallCostMs);
  expectWithin(costMs, 18);
});
