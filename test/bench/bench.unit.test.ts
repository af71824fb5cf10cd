/** What the bench concludes from its figures: a leak is found, what is flat is let through, a miss is a miss. */
import { describe, expect, it } from 'vitest';
import type { Measurement } from '../../bench/measurement.js';
import { verdictsOf } from '../../bench/summary.js';
import { judge } from '../../bench/trend.js';

const BOUND = { rise: 8, share: 0.05 };
const MINUTE = 60;

/** Twenty minutes of a value, each five seconds. */
const samplesOf = (value: (seconds: number) => number) => ({
  name: 'memory',
  unit: 'MB',
  samples: Array.from({ length: 241 }, (_, place): [number, number] => [place * 5, value(place * 5)]),
});
const judged = (value: (seconds: number) => number) => judge(samplesOf(value), BOUND, 5 * MINUTE, MINUTE);

describe('a soak', () => {
  it('lets through what is flat, noise and what comes and goes each minute included', () => {
    const noise = (seconds: number): number => ((seconds * 7919) % 13) - 6;
    expect(judged((seconds) => 150 + noise(seconds)).isMet).toBe(true);
    expect(judged((seconds) => 300 + (seconds % MINUTE)).isMet).toBe(true);
  });

  it('lets through what rises in the warm-up and falls later', () => {
    expect(judged((seconds) => Math.min(seconds, 240)).isMet).toBe(true);
    expect(judged((seconds) => 400 - seconds / 10).isMet).toBe(true);
  });

  it('finds a leak of one byte a spin at 14,000 spins a second', () => {
    expect(judged((seconds) => 150 + (seconds * 14_000) / 2 ** 20).isMet).toBe(false);
  });

  it('says nothing of what is too short', () => {
    const { name, unit, samples } = samplesOf(() => 150);
    const finding = judge({ name, unit, samples: samples.slice(0, 36) }, BOUND, 90, MINUTE);
    expect(finding).toMatchObject({ isMet: false, text: expect.stringContaining('too short') });
  });
});

describe('targets', () => {
  const measured = (scenario: string, round: number, spinsPerSecond: number): Measurement =>
    ({ scenario, period: '64', round, spinsPerSecond }) as Measurement;
  const goal = {
    what: 'ratio',
    atLeast: 2,
    value: (of: (period: string) => Measurement) => of('a/64').spinsPerSecond / of('b/64').spinsPerSecond,
  };

  it('is judged by the median of the ratios within each round', () => {
    const rounds = [
      [200, 100],
      [90, 50],
      [500, 100],
    ].flatMap(([a, b], round) => [measured('a', round, a!), measured('b', round, b!)]);
    expect(verdictsOf([goal], rounds)).toMatchObject([{ median: 2, isMet: true, rounds: [2, 1.8, 5] }]);
    expect(verdictsOf([{ ...goal, atLeast: 2.1 }], rounds)).toMatchObject([{ isMet: false }]);
  });

  it('is not judged where one side was not measured', () => {
    expect(verdictsOf([goal], [measured('a', 1, 200)])).toEqual([]);
  });
});
