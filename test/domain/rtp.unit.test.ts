/**
 * Tests how the returns of games are judged, against an independent computation and over thousands of
 * simulated days.
 */
import { describe, expect, test } from 'vitest';
import { rtpLines } from '../../src/cli/operator/gameCommands.js';
import { outcomeStatistics } from '../../src/domain/presentation.js';
import {
  halfUp,
  judgeRtp,
  normalFromSpins,
  type RtpState,
  rtpBands,
  rtpVerdict,
  type SheetMoments,
  sheetMoments,
} from '../../src/domain/rtp.js';
import { fiveReelWild, parSheet } from '../support/sheets.js';

type Sheet = Parameters<typeof sheetMoments>[0];
type Prize = readonly [multiplier: number, probability: number];

const sheetOf = (prizes: readonly Prize[]): Sheet =>
  ({
    combinations: prizes.map(([payMultiplier, comboProbability]) => ({ payMultiplier, comboProbability })),
  }) as unknown as Sheet;

/** Generator of random numbers that gives the same numbers at every execution (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Makes PAR sheets of three to forty prizes, from even to very skewed. */
function madeSheets(count: number): Sheet[] {
  const next = random(7);
  return Array.from({ length: count }, (_, i) => {
    const prizes = Array.from({ length: 3 + 2 * i }, (_, place): Prize => {
      const multiplier = place === 0 ? 0 : Number((next() * 10 ** (1 + (place % 4))).toFixed(2));
      return [multiplier, Number(((0.9 / 10 ** (place % 5)) * next()).toFixed(9))];
    });
    return sheetOf(prizes);
  });
}

const SHEETS: Sheet[] = [
  ...['classic-3-reel', 'double-strike', 'penny-sub-cent'].map((name) => parSheet(name) as unknown as Sheet),
  fiveReelWild() as unknown as Sheet,
  ...madeSheets(16),
];

/** Computes central moments directly in doubles, unlike the service, which sums powers exactly. */
function centralMoments({ combinations }: Sheet) {
  const total = combinations.reduce((sum, { comboProbability }) => sum + comboProbability, 0);
  const central = (power: number, mean: number) =>
    combinations.reduce(
      (sum, { comboProbability: p, payMultiplier: m }) => sum + (p / total) * (m - mean) ** power,
      0,
    );
  const mean = central(1, 0);
  const sigma = Math.sqrt(central(2, mean));
  return { mean, sigma, skewness: central(3, mean) / sigma ** 3 };
}

/** Returns the total payout of a number of spins of a sheet, in thousandths of the wager. */
function sampler(prizes: readonly Prize[], next: () => number): (spins: number) => number {
  const places = 4096;
  const table = new Float64Array(places);
  let at = 0;
  for (const [multiplier, probability] of prizes) {
    const until = Math.min(places, at + Math.round(probability * places));
    table.fill(multiplier * 1000, at, until);
    at = until;
  }
  return (spins) => {
    let paid = 0;
    for (let i = 0; i < spins; i++) paid += table[(next() * places) | 0]!;
    return paid;
  };
}

const judge = (spins: number, paidThousandths: number, moments: SheetMoments) =>
  judgeRtp(
    { spins: BigInt(spins), wageredMicros: BigInt(spins) * 1000n, paidMicros: BigInt(paidThousandths) },
    moments,
  );

describe('moments and confidence bands of a PAR sheet', () => {
  test('computes the same moments and bands of 20 PAR sheets as an independent computation', () => {
    expect(SHEETS).toHaveLength(20);
    for (const sheet of SHEETS) {
      const expected = centralMoments(sheet);
      const found = sheetMoments(sheet);
      for (const name of ['mean', 'sigma', 'skewness'] as const) {
        expect(Math.abs(found[name] / expected[name] - 1)).toBeLessThan(1e-9);
      }
      const [low, high] = rtpBands(found, 12_345n)!.band95;
      const half = (1.959963984540054 * expected.sigma) / Math.sqrt(12_345);
      expect(Math.abs(low - (expected.mean - half))).toBeLessThan(6e-7);
      expect(Math.abs(high - (expected.mean + half))).toBeLessThan(6e-7);
    }
  });

  test('the statistics for dealing agree with the exact moments on when a return can be judged', () => {
    for (const name of ['classic-3-reel', 'penny-sub-cent']) {
      const sheet = parSheet(name) as never;
      expect(outcomeStatistics(sheet).normalFromSpins).toBe(normalFromSpins(sheetMoments(sheet)));
    }
  });

  test('computes the moments and bands that the contract shows', () => {
    const moments = { mean: 0.925, sigma: 2.2038, skewness: 10.2779, maxMultiplier: 100 };
    expect(normalFromSpins(moments)).toBe(2669);
    expect(rtpBands(moments, 1_000_000n)).toEqual({
      band95: [0.920681, 0.929319],
      band99: [0.919323, 0.930677],
    });
    const { z, state } = judge(1_000_000, 927_200_000, moments);
    expect([halfUp(z!, 4), state]).toEqual([0.9983, 'WITHIN']);
  });

  test('the command begins with what the judgement says, and shows no band for too few spins', () => {
    const shown = (spins: number, state: RtpState): string =>
      rtpLines({
        gameConfigId: 7,
        expected: { rtp: 0.925, sigma: 10, skewness: 82.9, normalFromSpins: 171_884 },
        judgedAt: '2026-11-22T02:00:04.000Z',
        windows: [
          {
            window: 'LIFE',
            from: '2026-11-21',
            to: '2026-11-21',
            spins,
            wageredUsd: 860.5,
            paidOutUsd: 669.04,
            actualRtp: 0.777501,
            z: -0.83,
            band95: [0.5, 1.3],
            band99: [0.46, 1.39],
            nats: 0.2,
            state,
          },
        ],
      });
    expect(shown(3442, 'TOO_FEW').split('\n')[0]).toBe(
      "LIFE: This return can't be judged before 171,884 spins.",
    );
    expect(shown(3442, 'TOO_FEW')).not.toContain('46.00 % to 139.00 %');
    expect(shown(200_000, 'WITHIN').split('\n')[0]).toBe(`LIFE: ${rtpVerdict('WITHIN', 171_884)}.`);
    expect(shown(200_000, 'WITHIN')).toContain('46.00 % to 139.00 %');
  });

  test('reports any higher return as ALERT for a PAR sheet that always pays the same', () => {
    const moments = sheetMoments(sheetOf([[0.5, 1]]));
    expect(moments).toMatchObject({ mean: 0.5, sigma: 0, skewness: 0 });
    expect(judge(10, 5000, moments)).toEqual({ z: null, nats: null, state: 'WITHIN' });
    expect(judge(10, 5001, moments)).toEqual({ z: null, nats: null, state: 'ALERT' });
  });

  test('does not judge the return of a game without spins, or of a game that is not a slot', () => {
    const nothing = { z: null, nats: null, state: 'NOT_JUDGED' };
    expect(judge(0, 0, sheetMoments(SHEETS[0]!))).toEqual(nothing);
    expect(judgeRtp({ spins: 1n, wageredMicros: 1n, paidMicros: 1n }, undefined)).toEqual(nothing);
  });
});

// Probabilities are whole multiples of 1/4096, so a table of 4,096 elements is enough to draw exactly.
const HONEST: Prize[] = [
  [0, 2816 / 4096],
  [2, 1024 / 4096],
  [5, 256 / 4096],
];
const MOMENTS = sheetMoments(sheetOf(HONEST));

describe('judgement of returns over simulated days', () => {
  test('judges an honest game as REVIEW on 1 % and as WATCH on 4 % of 10,000 days', () => {
    const days = 10_000;
    const spins = 2000;
    const pay = sampler(HONEST, random(1));
    const states = new Map<RtpState, number>();
    for (let day = 0; day < days; day++) {
      const { state } = judge(spins, pay(spins), MOMENTS);
      states.set(state, (states.get(state) ?? 0) + 1);
    }
    // Each tolerance is four standard deviations of the number of days with the judgement.
    expect(Math.abs(states.get('REVIEW')! / days - 0.01)).toBeLessThan(0.004);
    expect(Math.abs(states.get('WATCH')! / days - 0.04)).toBeLessThan(0.008);
    expect([...states.keys()].sort()).toEqual(['REVIEW', 'WATCH', 'WITHIN']);
  });

  test('judges a game that pays 1 % more as REVIEW within the number of spins that the formula gives', () => {
    // The larger prize pays 5.13 instead of 5, which adds 0.008125 to the return of 0.8125.
    const skewed: Prize[] = [HONEST[0]!, HONEST[1]!, [5.13, HONEST[2]![1]]];
    const shift = sheetMoments(sheetOf(skewed)).mean - MOMENTS.mean;
    expect(shift / MOMENTS.mean).toBeCloseTo(0.01, 9);
    // 95 of 100 simulations find the fault, because the mean lies 1.645 standard deviations beyond q₉₉.
    const spins = Math.ceil((((2.5758 + 1.6449) * MOMENTS.sigma) / shift) ** 2);
    const pay = sampler(skewed, random(2));
    const runs = 40;
    const perDay = Math.ceil(spins / 250);
    let found = 0;
    for (let run = 0; run < runs; run++) {
      let [dealt, paid, isFound] = [0, 0, false];
      for (let day = 0; day < 250 && !isFound; day++) {
        dealt += perDay;
        paid += pay(perDay);
        const { state } = judge(dealt, Math.round(paid), MOMENTS);
        isFound = state === 'REVIEW' || state === 'ALERT';
      }
      if (isFound) found++;
    }
    expect(found / runs).toBeGreaterThan(0.9);
  });
});
