/**
 * The number of the newest change that takes something from a partner, a key or a game, told through Redis: a front end that has
 * lost Postgres learns by it that what it knows is old. Whoever reads such a change from Postgres tells it.
 */
import type { RedisClient } from './client.js';

/** Tells a change under a {@link changesKey}; a lower number than the one that is told already changes nothing. */
export async function announceChange(
  redis: RedisClient,
  key: string,
  datasetId: string,
  change: bigint,
): Promise<void> {
  await redis.zadd(key, 'GT', String(change), datasetId);
}

/** The newest change that was told; 0 where none was. */
export async function announcedChange(redis: RedisClient, key: string, datasetId: string): Promise<bigint> {
  return BigInt((await redis.zscore(key, datasetId)) ?? 0);
}
