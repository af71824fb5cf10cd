/** Measures the clock offsets between the stores and this process. */

import type { RedisNodes } from '../engine/redis/nodes.js';
import { databaseTimeMs } from '../postgres/clock.js';
import type { Sql } from '../postgres/connection.js';

/**
 * Returns the difference between a server's clock and the local clock at the middle of the round trip that
 * reads it. The error is at most half of the round trip.
 * @param now returns the local time in ms since the epoch
 * @returns offset in seconds, positive if the server's clock is ahead. Errors of the read are passed on.
 */
async function clockOffset(readMs: () => Promise<number>, now: () => number): Promise<number> {
  const before = now();
  const serverMs = await readMs();
  return (serverMs - (before + now()) / 2) / 1000;
}

/**
 * Returns the clock offsets in seconds, keyed by `redis:<host:port>` and `postgres`. A server that does not
 * answer is omitted.
 */
export async function clockOffsets(
  sql: Sql,
  nodes: RedisNodes,
  now: () => number,
): Promise<ReadonlyMap<string, number>> {
  const reads: [of: string, readMs: () => Promise<number>][] = [
    ['postgres', () => databaseTimeMs(sql)],
    ...nodes.all.map((node): [string, () => Promise<number>] => [
      `redis:${node.address}`,
      () => node.timeMs(),
    ]),
  ];
  const found = await Promise.allSettled(
    reads.map(async ([of, readMs]) => [of, await clockOffset(readMs, now)] as const),
  );
  return new Map(found.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
}
