/** No sheet holds up the threads that make blocks. */
import { expect, test } from 'vitest';
import { compileDistribution } from '../../src/domain/outcome.js';
import type { ParSheet } from '../../src/domain/par.js';

test('a sheet of extreme decimals is compiled in a few milliseconds of processor time', () => {
  // Probabilities and weights that have no common divisor, from 1e-300 to 1, in as many classes as an upload holds.
  const combinations = Array.from({ length: 90 }, (_, i) => ({
    reelSymbols: ['A'],
    comboString: 'A',
    payMultiplier: i < 2 ? 0 : Math.floor(i / 2),
    comboProbability: (1.234567890123457 + i / 97) * 10 ** -((i * 37) % 301),
    tierId: i < 2 ? 0 : 1,
    displayWeight: (1.234567890123457 + i / 89) * 10 ** ((i * 41) % 301),
  }));
  const sheet = { combinations } as unknown as ParSheet;
  const took = Array.from({ length: 20 }, () => {
    const before = process.cpuUsage();
    compileDistribution(sheet);
    return process.cpuUsage(before).user / 1000;
  });
  expect(Math.min(...took)).toBeLessThan(18);
});
