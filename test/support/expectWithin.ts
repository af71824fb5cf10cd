/** Checks promised durations where this is possible, and compares costs with each other. */
import { expect } from 'vitest';
import { IS_WHOLE } from './root.js';

/**
 * Checks that a duration or processor time in ms is below the promised value. Only `npm run test:time` checks
 * it, because it runs alone on a machine of the kind that the promise is made for. Elsewhere a duration
 * depends on the machine and its load.
 */
export function expectWithin(tookMs: number, promisedMs: number, what?: string): void {
  if (IS_WHOLE) expect(tookMs, what).toBeLessThan(promisedMs);
}

/**
 * Returns the timeout in ms for a wait: the promised duration if {@link expectWithin} checks it, otherwise a
 * bound for waits that would never end.
 */
export const timeoutFor = (promisedMs: number): number => (IS_WHOLE ? promisedMs : 90_000);

/**
 * Returns the processor time of one run in ms. The minimum of several runs counts, because other work on the
 * machine only adds to it.
 */
export async function leastCostMs(run: () => unknown, runs = 15): Promise<number> {
  let costMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs; i++) {
    const start = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(start);
    costMs = Math.min(costMs, (user + system) / 1000);
  }
  return costMs;
}

/**
 * Checks that one cost is less than a multiple of another. Other work on the machine and garbage collection
 * only add to a cost. So both costs are measured in turn, repeatedly while the bound is not met, and the
 * minimum of each counts.
 */
export async function expectRatioBelow(
  cost: { of: () => unknown; against: () => unknown },
  ratioMax: number,
  what: string,
): Promise<number> {
  let costMs = Number.POSITIVE_INFINITY;
  let againstMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 10; round++) {
    costMs = Math.min(costMs, await leastCostMs(cost.of, 4));
    againstMs = Math.min(againstMs, await leastCostMs(cost.against, 4));
    if (round >= 1 && costMs < ratioMax * againstMs) return costMs;
  }
  expect(costMs, `${what}: ${againstMs} ms for what it is compared with`).toBeLessThan(ratioMax * againstMs);
  return costMs;
}
