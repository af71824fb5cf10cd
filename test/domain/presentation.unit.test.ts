import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkParSheet, type ParSheet } from '../../src/domain/par.js';
import {
  celebrationTierOf,
  isBonusSymbol,
  isWildSymbol,
  outcomeStatistics,
  payoutTable,
  reelStrip,
  renderSheet,
} from '../../src/domain/presentation.js';

function sheetOf(name: string, changes: object = {}): ParSheet {
  const text = readFileSync(new URL(`../par-sheets/${name}.json`, import.meta.url), 'utf8');
  const checked = checkParSheet({ ...JSON.parse(text), ...changes });
  if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
  return checked.sheet;
}

// The RTP that this file states is not the RTP of its combinations.
const fiveReelWild = () => sheetOf('five-reel-wild', { certifiedRtp: 0.7775 });
const sheets = () => [
  sheetOf('classic-3-reel'),
  sheetOf('double-strike'),
  sheetOf('penny-sub-cent'),
  fiveReelWild(),
];

/** Renders the outcomes of a PAR sheet and parses them, as a partner does. */
function responses(sheet: ParSheet) {
  return renderSheet(sheet).combinations.map(({ json }) => JSON.parse(`{${json}}`));
}

/** A sheet of equally likely losing combinations, to test reel strips. */
function plainSheet(reelsByCombination: string[][], stops: number[], probabilities: number[]): ParSheet {
  const names = [...new Set(reelsByCombination.flat())];
  return {
    ...sheetOf('penny-sub-cent'),
    numReels: stops.length,
    virtualStopsPerReel: stops,
    symbols: names.map((name) => ({ name, display: name })),
    combinations: reelsByCombination.map((reelSymbols, index) => ({
      reelSymbols,
      comboString: reelSymbols.join('|'),
      payMultiplier: 0,
      comboProbability: probabilities[index]!,
      tierId: 0,
      displayWeight: 1,
    })),
  };
}

test('renders an outcome as JSON with the documented fields of outcome and presentation', () => {
  const { combinations, wagerMicros, maxPayoutMicros } = renderSheet(sheetOf('penny-sub-cent'));
  expect([wagerMicros, maxPayoutMicros]).toEqual([10_000, 77_000]);
  expect(combinations.map(({ payoutMicros }) => payoutMicros)).toEqual([0, 5_000, 77_000]);
  expect(combinations[2]!.json).toMatch(
    /^"outcome":\{"prizeTier":2,"payoutUsd":0\.077,"isBonusTrigger":false\},"presentation":\{"type":"slot","comboString":"A\|A\|A","reelSymbols":\[(\{"name":"A","display":"A","isWild":false\},?){3}\],"reelStops":\[\d,\d,\d\],"animationHints":\{"celebrationTier":"small","isNearMiss":false,"isBonusTrigger":false\}\}$/,
  );
  expect(combinations[1]!.json).toContain('"payoutUsd":0.005,');
});

test('renders every combination as its PAR sheet defines it', () => {
  for (const sheet of sheets()) {
    const rendered = renderSheet(sheet);
    const displays = new Map(sheet.symbols.map(({ name, display }) => [name, display]));
    responses(sheet).forEach(({ outcome, presentation }, index) => {
      const combination = sheet.combinations[index]!;
      expect(outcome.prizeTier).toBe(combination.tierId);
      expect(outcome.payoutUsd).toBeCloseTo(sheet.denominationUsd * combination.payMultiplier, 9);
      expect(rendered.combinations[index]!.payoutMicros).toBe(Math.round(outcome.payoutUsd * 1e6));
      expect(outcome.isBonusTrigger).toBe(presentation.animationHints.isBonusTrigger);
      expect(rendered.combinations[index]!.isBonusTrigger).toBe(outcome.isBonusTrigger);
      expect(presentation.comboString).toBe(combination.comboString);
      expect(presentation.reelSymbols.map((symbol: { name: string }) => symbol.name)).toEqual(
        combination.reelSymbols,
      );
      for (const { name, display } of presentation.reelSymbols) expect(display).toBe(displays.get(name));
    });
    expect(rendered.maxPayoutMicros).toBe(
      Math.max(...rendered.combinations.map((each) => each.payoutMicros)),
    );
  }
});

test('escapes symbol texts in the rendered JSON', () => {
  const sheet = sheetOf('penny-sub-cent');
  const odd = 'q"\\/😀\u2028';
  const symbols = sheet.symbols.map((symbol) => ({ ...symbol, display: odd }));
  const [first] = responses({ ...sheet, symbols });
  expect(first.presentation.reelSymbols[0].display).toBe(odd);
});

describe('a PAR sheet with five reels and wilds', () => {
  test('marks wild symbols in the presentation', () => {
    const wilds = responses(fiveReelWild()).map(({ presentation }) =>
      presentation.reelSymbols.map((symbol: { isWild: boolean }) => (symbol.isWild ? 'w' : '.')).join(''),
    );
    expect(wilds.filter((row) => row.includes('w'))).toEqual(['..w..', '.w...', '..w..', '.w...']);
  });

  test('triggers the bonus with three bonus symbols, but not with two', () => {
    const triggers = responses(fiveReelWild()).filter(({ outcome }) => outcome.isBonusTrigger);
    expect(triggers.map(({ presentation }) => presentation.comboString)).toEqual(['BO|BO|BO|A|10']);
  });

  test('marks a losing combination as a near miss if one reel keeps it from a win of tier 3 or above', () => {
    const misses = responses(fiveReelWild()).filter(
      ({ presentation }) => presentation.animationHints.isNearMiss,
    );
    expect(misses.map(({ presentation }) => presentation.comboString)).toEqual(['DR|DR|DR|DR|10']);
  });

  test('chooses the celebration by payout and prize tier', () => {
    const celebrations = responses(fiveReelWild()).map(
      ({ presentation }) => presentation.animationHints.celebrationTier,
    );
    // The first two wins pay half the wager and exactly the wager.
    expect(celebrations).toEqual([
      ...['none', 'none', 'none', 'none'],
      ...['none', 'none', 'small', 'small', 'medium', 'medium', 'large', 'large', 'jackpot'],
    ]);
  });
});

test('finds the same near misses as a comparison of all pairs of combinations', () => {
  for (const sheet of sheets()) {
    const expected = sheet.combinations.map(
      (own) =>
        own.tierId === 0 &&
        sheet.combinations.some(
          (win) =>
            win.tierId >= 3 &&
            win.reelSymbols.filter((name, reel) => name !== own.reelSymbols[reel]).length === 1,
        ),
    );
    expect(responses(sheet).map(({ presentation }) => presentation.animationHints.isNearMiss)).toEqual(
      expected,
    );
  }
  const classic = sheetOf('classic-3-reel');
  const shown = responses(classic).filter(({ presentation }) => presentation.animationHints.isNearMiss);
  expect(shown.map(({ presentation }) => presentation.comboString)).toEqual(['7|7|-', 'BELL|BELL|CH']);
});

test('a losing combination is not marked as a near miss if a winning combination has the same reels', () => {
  const sheet = sheetOf('classic-3-reel');
  const twin = { ...sheet.combinations[13]!, payMultiplier: 0, tierId: 0 };
  const shown = responses({ ...sheet, combinations: [...sheet.combinations, twin] });
  expect(shown.at(-1).presentation.animationHints.isNearMiss).toBe(false);
});

test.each([
  [0, 5, 1, 'none'],
  [1, 2, 1, 'small'],
  [2, 2, 1, 'small'],
  [3, 2, 1, 'medium'],
  [4, 2, 1, 'large'],
  [5, 2, 1, 'large'],
  [6, 2, 1, 'jackpot'],
  [6, 1, 1, 'none'],
] as const)(
  'celebrates a prize of tier %d that pays %d on a wager of %d as %s',
  (tier, payout, wager, expected) => {
    expect(celebrationTierOf(tier, payout, wager)).toBe(expected);
  },
);

test('recognizes a wild symbol by the word in its name, in any case', () => {
  for (const name of [
    'WILD',
    'Wild',
    'wild',
    'wIlD',
    'WILD_2X',
    '2x-wild',
    'Wild 3',
    'WILD2',
    'DoubleWild',
    'WildBar',
  ]) {
    expect(isWildSymbol(name), name).toBe(true);
  }
  for (const name of ['WILDERNESS', 'Wilderness', 'REWILD', 'WILDÉ', 'WI_LD', '', 'Bewilder']) {
    expect(isWildSymbol(name), name).toBe(false);
  }
  for (const name of ['BONUS', 'Bonus_1', 'SCATTER', 'goldScatter'])
    expect(isBonusSymbol(name), name).toBe(true);
  for (const name of ['BONUSES', 'SCATTERED', 'Bon']) expect(isBonusSymbol(name), name).toBe(false);
});

describe('virtual reel strips', () => {
  test('stops each reel on a position that shows the symbol of the outcome', () => {
    for (const sheet of sheets()) {
      const strips = sheet.virtualStopsPerReel.map((_, reel) => reelStrip(sheet, reel));
      responses(sheet).forEach(({ presentation }, index) => {
        const shown = presentation.reelStops.map((stop: number, reel: number) => strips[reel]![stop]);
        expect(shown).toEqual(sheet.combinations[index]!.reelSymbols);
      });
    }
  });

  test('lays out the reel strips of a PAR sheet the same way each time', () => {
    for (const sheet of sheets()) expect(renderSheet(structuredClone(sheet))).toEqual(renderSheet(sheet));
  });

  test('gives each symbol at least one stop, and the other stops in proportion to its probability', () => {
    const reels = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(
        reels.chain((names) =>
          fc.tuple(
            fc.constant(names),
            fc.integer({ min: names.length, max: 500 }),
            fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: names.length, maxLength: names.length }),
          ),
        ),
        ([names, stops, weights]) => {
          const probabilities = weights.map((weight) => weight / 100_000);
          const sheet = plainSheet(
            names.map((name) => [name]),
            [stops],
            probabilities,
          );
          const strip = reelStrip(sheet, 0);
          expect(strip).toHaveLength(stops);
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          names.forEach((name, index) => {
            const own = strip.filter((symbol) => symbol === name).length;
            const share = ((stops - names.length) * weights[index]!) / total;
            expect(own).toBeGreaterThanOrEqual(1 + Math.floor(share));
            expect(own).toBeLessThanOrEqual(2 + Math.floor(share));
          });
        },
      ),
    );
  });

  test('spreads the stops of a symbol evenly over the reel', () => {
    const sheet = plainSheet([['A'], ['B']], [100], [0.9, 0.1]);
    const positions = reelStrip(sheet, 0).flatMap((symbol, position) => (symbol === 'B' ? [position] : []));
    expect(positions).toHaveLength(11);
    const gaps = positions.map(
      (position, i) => (positions[(i + 1) % positions.length]! - position + 100) % 100,
    );
    expect(Math.max(...gaps)).toBeLessThan(25);
    expect(Math.min(...gaps)).toBeGreaterThan(2);
  });

  test('lays out reel strips for a symbol without probability, for one stop, and for a million stops', () => {
    const sheet = plainSheet(
      [
        ['A', 'A', 'A'],
        ['A', 'B', 'A'],
      ],
      [1, 2, 1_000_000],
      [1, 0],
    );
    expect(reelStrip(sheet, 0)).toEqual(['A']);
    expect(reelStrip(sheet, 1).sort()).toEqual(['A', 'B']);
    expect(new Set(reelStrip(sheet, 2))).toEqual(new Set(['A']));
    for (const { presentation } of responses(sheet))
      expect(presentation.reelStops[2]).toBeLessThan(1_000_000);
  });
});

test("ignores combinations that can't be drawn when it computes the largest payout", () => {
  const sheet = sheetOf('classic-3-reel');
  const impossible = { ...sheet.combinations[13]!, payMultiplier: 1_000, comboProbability: 0 };
  const { maxPayoutMicros } = renderSheet({ ...sheet, combinations: [...sheet.combinations, impossible] });
  expect(maxPayoutMicros).toBe(9_625_000);
});

test('stores the payout table as 64-bit little-endian micro-USD for each combination', () => {
  const table = payoutTable(renderSheet(sheetOf('penny-sub-cent')));
  expect([0, 8, 16].map((offset) => table.readBigInt64LE(offset))).toEqual([0n, 5_000n, 77_000n]);
  expect(table).toHaveLength(24);
  const large = { prizeTier: 6, payoutMicros: 1e15, isBonusTrigger: false, json: '' };
  expect(payoutTable({ combinations: [large] }).readBigInt64LE(0)).toBe(10n ** 15n);
});

test('computes the RTP, hit frequency and variance of a PAR sheet', () => {
  const { rtp, hitFrequency, variancePerSpin } = outcomeStatistics(sheetOf('penny-sub-cent'));
  expect(rtp).toBeCloseTo(0.92, 12);
  expect(hitFrequency).toBeCloseTo(0.4, 12);
  expect(variancePerSpin).toBeCloseTo(0.3 * 0.25 + 0.1 * 59.29 - 0.8464, 12);
  for (const sheet of sheets()) expect(outcomeStatistics(sheet).rtp).toBeCloseTo(sheet.certifiedRtp, 6);
});
