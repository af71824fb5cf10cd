/** Times that are promised, held where they can be; and costs, which a test compares with each other. */
import { expect } from 'vitest';
import { IS_WHOLE } from './root.js';

/**
 * Holds a time, or processor time, against its promise. Only `npm run test:time` does, which runs alone on a machine of the kind
 * that the promise is made for: everywhere else, how long something takes depends on the machine and on what else runs on it.
 */
export function expectWithin(tookMs: number, promisedMs: number, what?: string): void {
  if (IS_WHOLE) expect(tookMs, what).toBeLessThan(promisedMs);
}

/** For a wait that ends with a condition: its promise where {@link expectWithin} holds it, else what ends a wait that never would. */
export const timeoutFor = (promisedMs: number): number => (IS_WHOLE ? promisedMs : 90_000);

/** Milliseconds of the processor that one run takes: the least of some, since what others do on the machine is not its cost. */
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
 * Holds one cost to less than so many times another. What else runs on the machine, and a collection of garbage, only ever
 * add to a cost: so the two are measured in turn, and again while the bound isn't met, the least of each counts.
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
