/**
 * Compares clocks before a cell is prepared. The entry ids of a prepared cell continue from the clock of
 * Redis. If that clock were ahead, no spin could be dealt from the cell until the correct time had caught up.
 * So no cell is prepared while the clocks differ.
 */
import { databaseTimeMs } from '../../postgres/clock.js';
import type { Sql } from '../../postgres/connection.js';
import { aheadMs, type Clocks, skewText } from '../redis/clockSkew.js';
import type { RedisNode } from '../redis/node.js';

/**
 * The clocks of Redis and another system differ too much. No cell was prepared, and the preparation is
 * retried immediately.
 */
export class ClocksDifferError extends Error {
  /** Time by which the clock of Redis is ahead of the other clock, in ms. Negative if it is behind. */
  readonly skewMs: number;
  constructor(skewMs: number, other: string) {
    super(skewText(skewMs, 'Redis', other));
    this.skewMs = skewMs;
  }
}

/**
 * Returns the time by the clock of Redis in ms since the Unix epoch, after comparing this clock with the
 * other clocks.
 * @throws ClocksDifferError if the clock of Redis differs too much from another clock
 */
export async function agreedTimeMs(sql: Sql, node: RedisNode, { now, skewMaxMs }: Clocks): Promise<number> {
  const beforeMs = now();
  const postgresBeforeMs = await databaseTimeMs(sql);
  const redisMs = await node.timeMs();
  const postgresAfterMs = await databaseTimeMs(sql);
  const others = [
    { skewMs: aheadMs(redisMs, beforeMs, now()), name: 'this worker' },
    { skewMs: aheadMs(redisMs, postgresBeforeMs, postgresAfterMs), name: 'Postgres' },
  ];
  for (const { skewMs, name } of others)
    if (Math.abs(skewMs) > skewMaxMs) throw new ClocksDifferError(skewMs, name);
  return redisMs;
}
