/** Checks promised durations on machines where this is possible, and compares costs with each other. */
import { expect } from 'vitest';
import { IS_WHOLE } from './root.js';

/**
 * Checks that a duration or processor time in ms is below the promised value. Only `npm run test:time` checks
 * it, because that command runs alone on a machine of the kind for which the promise is made. Elsewhere a
 * duration depends on the machine and its load.
 */
export function expectWithin(tookMs: number, promisedMs: number, what?: string): void {
  if (IS_WHOLE) expect(tookMs, what).toBeLessThan(promisedMs);
}

/**
 * Returns the timeout of a wait, in ms: the promised duration if {@link expectWithin} checks it, otherwise a
 * long time that only ends a wait for something that never happens.
 */
export const timeoutFor = (promisedMs: number): number => (IS_WHOLE ? promisedMs : 90_000);

/**
 * Returns the processor time of one execution in ms. It is the minimum of several executions, because other
 * work on the machine only adds to it.
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
 * only add to a cost. So both costs are measured in turn, again and again while the check fails, and the
 * minimum of each is compared.
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
