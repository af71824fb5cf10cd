/** Compares the clock of Redis with other clocks. */
import type { RedisNode } from './node.js';

export interface Clocks {
  /** Returns this process's clock, in ms since the Unix epoch. */
  readonly now: () => number;
  /** Maximum tolerated difference between the clocks of Redis, Postgres and this process, in ms. */
  readonly skewMaxMs: number;
}

/**
 * Returns how far a clock is ahead of another clock, in ms. The other clock was read twice, once before and
 * once after the first clock. Negative if the first clock is behind, 0 if both may be equal.
 */
export const aheadMs = (timeMs: number, beforeMs: number, afterMs: number): number =>
  timeMs > afterMs ? timeMs - afterMs : Math.min(0, timeMs - beforeMs);

/**
 * Returns the nodes whose clock differs too much from this process's clock, with a message for each node.
 * Nodes that do not respond are skipped.
 */
export async function skewedNodes(
  nodes: readonly RedisNode[],
  { now, skewMaxMs }: Clocks,
): Promise<{ readonly node: RedisNode; readonly problem: string }[]> {
  const looks = nodes.map(async (node) => {
    const beforeMs = now();
    const timeMs = await node.timeMs();
    const skewMs = aheadMs(timeMs, beforeMs, now());
    const problem = skewText(skewMs, `Redis at ${node.address}`, 'this process');
    return Math.abs(skewMs) > skewMaxMs ? [{ node, problem }] : [];
  });
  const found = await Promise.allSettled(looks);
  return found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
}

export const skewText = (skewMs: number, redis: string, other: string): string =>
  `The clock of ${redis} is ${Math.abs(skewMs) / 1000} s ${skewMs > 0 ? 'ahead of' : 'behind'} the clock of ${other}`;
