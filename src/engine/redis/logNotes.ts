/**
 * Keeps the newest published notes of the public log in Redis, outside the cells. If Postgres is restored to
 * an older state or is empty, the notes prove which trees the log has already signed (evidenceWatch.ts).
 */
import type { RedisClient } from './redisClient.js';

/** Number of published notes that are kept per public log. */
const KEPT = 2;

/** Adds a published note of the public log and removes old notes, so that only the newest are kept. */
export async function keepLogNote(
  redis: RedisClient,
  key: string,
  size: number,
  note: string,
): Promise<void> {
  await redis.hset(key, String(size), note);
  const sizes = Object.keys(await redis.hgetall(key));
  const old = sizes.sort((a, b) => Number(b) - Number(a)).slice(KEPT);
  if (old.length > 0) await redis.hdel(key, ...old);
}

export async function logNotes(redis: RedisClient, key: string): Promise<string[]> {
  return Object.values(await redis.hgetall(key));
}
