/** Tests what a soak test concludes from its samples: it finds a leak and accepts a flat value. */
import { describe, expect, it } from 'vitest';
import { judge } from '../../bench/trend.js';

const BOUND = { rise: 8, share: 0.05 };
const MINUTE = 60;

/** Returns samples of a value every five seconds for twenty minutes. */
const samplesOf = (value: (seconds: number) => number) => ({
  name: 'memory',
  unit: 'MB',
  samples: Array.from({ length: 241 }, (_, place): [number, number] => [place * 5, value(place * 5)]),
});
const judged = (value: (seconds: number) => number) => judge(samplesOf(value), BOUND, 5 * MINUTE, MINUTE);

describe('verdicts of a soak test', () => {
  it('a soak test accepts flat values, with noise and with variations within each minute', () => {
    const noise = (seconds: number): number => ((seconds * 7919) % 13) - 6;
    expect(judged((seconds) => 150 + noise(seconds)).isMet).toBe(true);
    expect(judged((seconds) => 300 + (seconds % MINUTE)).isMet).toBe(true);
  });

  it('a soak test accepts a value that rises during the warm-up and falls later', () => {
    expect(judged((seconds) => Math.min(seconds, 240)).isMet).toBe(true);
    expect(judged((seconds) => 400 - seconds / 10).isMet).toBe(true);
  });

  it('a soak test finds a leak of one byte a spin at 14,000 spins a second', () => {
    expect(judged((seconds) => 150 + (seconds * 14_000) / 2 ** 20).isMet).toBe(false);
  });

  it('a soak test gives no verdict on too few samples', () => {
    const { name, unit, samples } = samplesOf(() => 150);
    const finding = judge({ name, unit, samples: samples.slice(0, 36) }, BOUND, 90, MINUTE);
    expect(finding).toMatchObject({ isMet: false, text: expect.stringContaining('too short') });
  });
});
