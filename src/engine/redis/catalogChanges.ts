/**
 * Announces the number of the newest change that restricts a partner, a key or a game, through a sorted set
 * in Redis. From this number, a front end that has lost Postgres can tell that its catalog is stale. Every
 * process that reads such a change from Postgres announces it.
 */
import type { RedisClient } from './redisClient.js';

/**
 * Announces a change under a {@link changesKey}. A number that is lower than the announced one is ignored.
 */
export async function announceChange(
  redis: RedisClient,
  key: string,
  datasetId: string,
  change: bigint,
): Promise<void> {
  await redis.zadd(key, 'GT', String(change), datasetId);
}

/** Returns the number of the newest announced change, or 0 if there is none. */
export async function announcedChange(redis: RedisClient, key: string, datasetId: string): Promise<bigint> {
  return BigInt((await redis.zscore(key, datasetId)) ?? 0);
}
