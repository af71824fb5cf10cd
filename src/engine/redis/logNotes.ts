/**
 * The newest published notes of the public log, outside the cells: a Postgres that was restored to an older state, or emptied, learns
 * of them what it has signed (evidenceWatch.ts).
 */
import type { RedisClient } from './redisClient.js';

/** Notes that are kept of a log. */
const KEPT = 2;

/** Keeps a note, beside the newest of those that are there. */
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
