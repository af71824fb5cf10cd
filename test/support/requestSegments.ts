/** Finds which request ids Redis holds, for tests that need request ids bound in Redis or released. */
import type { Redis } from 'ioredis';
import { newestEntryId } from '../../src/engine/redis/cellRecords.js';
import { cellKey, idempotencyKey } from '../../src/engine/redis/keys.js';
import {
  firstSegment,
  readSegments,
  segmentNumbers,
  writeSegments,
} from '../../src/engine/redis/segmentRecords.js';
import { until } from './wait.js';

/**
 * Fence and token of the owner that writes blocks into a cell of {@link openedAt} in tests. Most tests use
 * the epoch of this token.
 */
export const CLAIMED = { fence: 1n, token: '1' } as const;

/** Returns the fields of a cell that deals and whose owner has the fence of {@link CLAIMED}. */
export const openedAt = (token: string) => ({
  epoch: token,
  fence: String(CLAIMED.fence),
  segments: writeSegments(firstSegment(0n)),
});

/**
 * Returns the key of the segment in which a cell binds a request id, by its hash.
 * @throws Error if no segment binds it
 */
export async function boundKey(redis: Redis, cell: number, hash: Buffer): Promise<string> {
  const segments = readSegments((await redis.hgetBuffer(cellKey(cell), 'segments'))!);
  for (const segment of segmentNumbers(segments)) {
    const key = idempotencyKey(cell, segment);
    if ((await redis.hexists(key, hash)) === 1) return key;
  }
  throw new Error('The requestId is not bound');
}

/** Waits until a cell has released the request ids of all its current entries. */
export async function untilReleased(redis: Redis, cell: number): Promise<void> {
  const newest = newestEntryId((await redis.hgetBuffer(cellKey(cell), 'last'))!, cell);
  await until(async () => {
    const segments = await redis.hgetBuffer(cellKey(cell), 'segments');
    return segments !== null && readSegments(segments).releasedId >= newest;
  }, 'Redis has released the request ids');
}
