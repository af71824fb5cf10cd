/**
 * The number of the newest change that takes something from a partner, a key or a game, announced through Redis: a front end that has
 * lost Postgres learns by it that what it knows is old. Whoever reads such a change from Postgres announces it.
 */
import type { RedisClient } from './redisClient.js';

/** Announces a change under a {@link changesKey}; a lower number than the one that is announced already changes nothing. */
export async function announceChange(
  redis: RedisClient,
  key: string,
  datasetId: string,
  change: bigint,
): Promise<void> {
  await redis.zadd(key, 'GT', String(change), datasetId);
}

/** The newest change that was announced; 0 where none was. */
export async function announcedChange(redis: RedisClient, key: string, datasetId: string): Promise<bigint> {
  return BigInt((await redis.zscore(key, datasetId)) ?? 0);
}
