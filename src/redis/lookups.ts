/** Reads single players and games; bound to the connection for those who must not hold it. */
import type { RedisClient } from './client.js';
import { cellKey, gamesKey, outboxKey, playerField, playersKey } from './keys.js';
import {
  type GameRecord,
  type OutboxRecord,
  type PlayerRecord,
  readGame,
  readOutbox,
  readPlayer,
} from './records.js';

export interface Lookups {
  /** A player as of the last spin; undefined where it never spun. */
  findPlayer(cell: number, partnerId: number, playerId: string): Promise<PlayerRecord | undefined>;
  /** A game's counter and queue; undefined before its first block. */
  findGame(cell: number, gameId: number): Promise<GameRecord | undefined>;
  /** The epoch that Redis is at in a cell; undefined where it holds none. */
  epoch(cell: number): Promise<string | undefined>;
  /** The oldest ledger entries of a cell that are not trimmed from the outbox yet. */
  outbox(cell: number, limit: number): Promise<OutboxRecord[]>;
  /** Age of the oldest outbox entry of a cell; 0 where there is none. */
  outboxAgeSeconds(cell: number): Promise<number>;
}

export function openLookups(redis: RedisClient): Lookups {
  return {
    async findPlayer(cell, partnerId, playerId) {
      const record = await redis.hgetBuffer(playersKey(cell), playerField(partnerId, playerId));
      return record === null ? undefined : readPlayer(record);
    },
    async findGame(cell, gameId) {
      const record = await redis.hgetBuffer(gamesKey(cell), String(gameId));
      return record === null ? undefined : readGame(record);
    },
    async epoch(cell) {
      return (await redis.hget(cellKey(cell), 'epoch')) ?? undefined;
    },
    async outbox(cell, limit) {
      const batches = (await redis.xrangeBuffer(outboxKey(cell), '-', '+', 'COUNT', limit)) as [
        Buffer,
        Buffer[],
      ][];
      return batches.flatMap(([, fields]) => readOutbox(fields[1]!)).slice(0, limit);
    },
    async outboxAgeSeconds(cell) {
      const [oldest] = await redis.xrange(outboxKey(cell), '-', '+', 'COUNT', 1);
      return oldest === undefined ? 0 : Math.max(0, Date.now() - Number.parseInt(oldest[0], 10)) / 1000;
    },
  };
}
