/** What the bench concludes from its figures: a leak is found, what is flat is let through, a miss is a miss. */
import { describe, expect, it } from 'vitest';
import type { Measurement } from '../../bench/measurement.js';
import { CATCHING_UP, renderSlowSeconds, slowSeconds, UNEXPLAINED } from '../../bench/slowSeconds.js';
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

  it('tells what happened from the time a late answer was due, of each cause the worst', () => {
    const happened = (from: number, cause: string, amount: number) => ({
      from,
      to: from,
      cause,
      amount,
      text: `${cause} ${amount}`,
    });
    const seconds = [
      { at: 100, p99Ms: 99, maxMs: 3000 },
      { at: 104, p99Ms: 1500, maxMs: 1600 },
      { at: 110, p99Ms: 101, maxMs: 120 },
    ];
    const happenings = [
      happened(101, 'sync', 9),
      ...[happened(102, 'sync', 900), happened(103, 'sync', 40), happened(104, 'loop', 30)],
      happened(111, 'loop', 50),
    ];
    const slow = slowSeconds(seconds, happenings);
    expect(slow.map(({ at, causes, texts }) => ({ at, causes, texts }))).toEqual([
      { at: 104, causes: ['sync', 'loop'], texts: ['sync 900', 'loop 30'] },
      { at: 110, causes: [UNEXPLAINED], texts: [] },
    ]);
    expect(renderSlowSeconds(slow, 3)[0]).toContain(`2 of 3 seconds`);
  });

  it('takes what follows a slow second for catching up, as long as it gets less', () => {
    const second = (at: number, p99Ms: number) => ({ at, p99Ms, maxMs: p99Ms });
    const happenings = [{ from: 100, to: 100, cause: 'sync', amount: 900, text: 'sync 900' }];
    const slow = slowSeconds(
      [
        second(99, 950),
        second(100, 1900),
        second(101, 1900),
        second(102, 1500),
        second(103, 1100),
        second(104, 1200),
      ],
      happenings,
    );
    expect(slow.map((each) => each.causes[0])).toEqual([
      UNEXPLAINED,
      'sync',
      'sync',
      'sync',
      CATCHING_UP,
      UNEXPLAINED,
    ]);
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
