/** Reads the clock of Redis, by which rate limit windows are counted. */
import { Redis } from 'ioredis';
import { until } from './wait.js';

/** Current time by the clock of Redis. */
export interface StoreClock {
  seconds(): Promise<number>;
  /** Waits until the current minute has at least a number of seconds left. */
  room(seconds: number): Promise<void>;
  close(): void;
}
export function storeClock(redisUrl: string): StoreClock {
  const redis = new Redis(redisUrl, { protocol: 2 });
  const seconds = async (): Promise<number> => Number((await redis.time())[0]);
  return {
    seconds,
    room: (wanted) =>
      until(
        async () => 60 - ((await seconds()) % 60) >= wanted,
        `${wanted} s of the minute are left`,
        wanted * 1000 + 5000,
      ),
    close: () => redis.disconnect(),
  };
}
