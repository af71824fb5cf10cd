/**
 * The clocks while a cell is prepared. What is written then goes on from the clock of Redis: under one that is ahead the cell could not
 * be dealt from until the right time has come to it. So nothing is prepared while clocks differ.
 */
import { databaseTimeMs } from '../../postgres/clock.js';
import type { Sql } from '../../postgres/connection.js';
import { aheadMs, type Clocks, skewText } from '../redis/clockSkew.js';
import type { RedisNode } from '../redis/node.js';

/** Clocks differ too much: nothing is prepared, and it is tried again at once. */
export class ClocksDifferError extends Error {
  /** By how much Redis is ahead of the other clock; below 0: behind. */
  readonly skewMs: number;
  constructor(skewMs: number, other: string) {
    super(skewText(skewMs, 'Redis', other));
    this.skewMs = skewMs;
  }
}

/** The clock of Redis, once it is known to agree with the others. @throws ClocksDifferError */
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
