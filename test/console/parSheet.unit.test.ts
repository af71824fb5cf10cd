/** Tests the figures of a PAR sheet that the console shows. */
import { describe, expect, test } from 'vitest';
import { decimal, tierReturns } from '../../console/parSheet.js';
import { fiveReelWild, parSheet } from '../support/sheets.js';

type Sheet = Parameters<typeof tierReturns>[0] & {
  readonly certifiedRtp: number;
  readonly tiers: readonly {
    readonly tierId: number;
    readonly probability: number;
    readonly payMultiplier: number;
  }[];
};

describe('the return of the tiers of a PAR sheet', () => {
  const sheet = fiveReelWild() as unknown as Sheet;
  const sum = (parts: readonly number[]): number => parts.reduce((total, part) => total + part, 0);

  test('the tiers sum to the certified return if their nominal multipliers differ from what they pay', () => {
    const nominal = sum(sheet.tiers.map(({ probability, payMultiplier }) => probability * payMultiplier));
    expect(nominal).not.toBeCloseTo(sheet.certifiedRtp, 3);
    expect(sum([...tierReturns(sheet).values()].map(({ part }) => part))).toBeCloseTo(sheet.certifiedRtp, 9);
  });

  test('a tier has the lowest and the highest multiplier of its combinations', () => {
    for (const { tierId } of sheet.tiers) {
      const pays = sheet.combinations
        .filter((combination) => combination.tierId === tierId)
        .map(({ payMultiplier }) => payMultiplier);
      expect(tierReturns(sheet).get(tierId)).toMatchObject({
        lowest: Math.min(...pays),
        highest: Math.max(...pays),
      });
    }
  });
});

test.each([
  [0.1 + 0.2, '0.3'],
  [(parSheet('classic-3-reel') as unknown as Sheet).tiers[1]!.probability, '0.15'],
  [1e-7, '0.0000001'],
  [0.000_010_987_654_321_5, '0.0000109876543215'],
  [38.5, '38.5'],
  [12_345, '12345'],
  [0, '0'],
])('the console shows the number %d of a PAR sheet as %s', (value, text) => {
  expect(decimal(value)).toBe(text);
});
