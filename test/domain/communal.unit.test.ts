/**
 * Tests the arithmetic of communal progressives: the expected return, the progress, and the encoded record of
 * a pot.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bonusRtp, communalStatus, progressPct } from '../../src/domain/communal.js';
import { communalUsdText, micros } from '../../src/domain/communalRules.js';
import { readPot, writeRules, writeState } from '../../src/engine/redis/communalRecords.js';

const tiersOf = (steps: readonly number[], triggerInterval: number) => {
  let spins = 0;
  return steps.map((step, i) => {
    spins += step * triggerInterval;
    return { tierLevel: i + 1, tierName: `T${i}`, triggerAtSpins: spins, amountMicros: (i + 1) * 1_000_001 };
  });
};
const TIERS = fc
  .tuple(
    fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 6 }),
    fc.integer({ min: 10, max: 20 }),
  )
  .map(([steps, triggerInterval]) => ({ triggerInterval, tiers: tiersOf(steps, triggerInterval) }));

test('computes the bonus return from how often each tier is the highest that fires', () => {
  fc.assert(
    fc.property(TIERS, (rules) => {
      const period = rules.tiers.reduce((product, { triggerAtSpins }) => lcm(product, triggerAtSpins), 1);
      fc.pre(period <= 500_000);
      let paid = 0;
      for (let progress = rules.triggerInterval; progress <= period; progress += rules.triggerInterval) {
        const dividing = rules.tiers.filter(({ triggerAtSpins }) => progress % triggerAtSpins === 0);
        paid += dividing.at(-1)?.amountMicros ?? 0;
      }
      expect(bonusRtp(rules, 250_000)).toBeCloseTo(paid / period / 250_000, 6);
    }),
    { numRuns: 40 },
  );
});

const lcm = (a: number, b: number): number => (a / gcd(a, b)) * b;
const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));

test('reports a communal progressive as EXHAUSTED if its budget is below the smallest tier', () => {
  const tiers = tiersOf([1, 1], 10);
  expect(communalStatus({ enabled: true, tiers }, 1_000_000)).toBe('EXHAUSTED');
  expect(communalStatus({ enabled: true, tiers }, 1_000_001)).toBe('ACTIVE');
  expect(communalStatus({ enabled: false, tiers }, 0)).toBe('DISABLED');
});

test('shows the progress of a communal progressive in tens of a percent, rounded down', () => {
  expect([0, 99, 100, 999, 1000, 1950].map((progress) => progressPct(progress, 1000))).toEqual([
    0, 0, 10, 90, 0, 90,
  ]);
  expect([10, 50, 999].map((triggerAtSpins) => progressPct(7, triggerAtSpins))).toEqual([null, null, null]);
});

test('converts communal amounts to decimal texts and back without loss', () => {
  fc.assert(
    fc.property(fc.integer({ min: -9e15, max: 9e15 }), (amount) => {
      expect(micros(communalUsdText(amount))).toBe(amount === 0 ? 0 : amount);
    }),
  );
  expect([communalUsdText(5_000_000), communalUsdText(1), communalUsdText(500_000)]).toEqual([
    '5.00',
    '0.000001',
    '0.50',
  ]);
  for (const text of ['', '1e3', '.5', '5.', '+1', '1.0000001', ' 1', '0x1'])
    expect(micros(text)).toBeUndefined();
});

test('reads the record of a communal pot as it was written', () => {
  fc.assert(
    fc.property(TIERS, fc.boolean(), fc.integer({ min: 0, max: 2 ** 47 }), (rules, flag, progress) => {
      const whole = {
        enabled: flag,
        ...rules,
        triggerSplit: 3333,
        windowMinutes: 10_080,
        communitySize: 200,
        emptyCommunity: flag ? ('RETURN_TO_BUDGET' as const) : ('TO_TRIGGER' as const),
        onShortBudget: flag ? ('SKIP' as const) : ('PAY_REMAINING' as const),
      };
      const state = { version: 7, remembersPlayers: !flag, progress, budgetMicros: 9e15 };
      const record = Buffer.concat([writeState(state), writeRules(12, whole)]);
      expect(readPot(record)).toEqual({ ...state, partnerId: 12, rules: whole });
    }),
  );
});
