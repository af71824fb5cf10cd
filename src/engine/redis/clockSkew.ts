/** The clock of Redis beside others. */
import type { RedisNode } from './node.js';

export interface Clocks {
  /** Of this process, milliseconds since the epoch. */
  readonly now: () => number;
  /** By how much the clocks of Redis, Postgres and this process may differ. */
  readonly skewMaxMs: number;
}

/** By how much a clock is ahead of another that was read before and after it; 0 where it may be equal. */
export const aheadMs = (timeMs: number, beforeMs: number, afterMs: number): number =>
  timeMs > afterMs ? timeMs - afterMs : Math.min(0, timeMs - beforeMs);

/** The clocks of nodes that differ too much from that of this process, a line each; of a node that does not answer nothing is said. */
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
  `The clock of ${redis} is ${Math.abs(skewMs) / 1000} s ${skewMs > 0 ? 'ahead of' : 'behind'} that of ${other}`;
