/** Reads single players and games; bound to the connection for those who must not hold it. */
import type { RedisClient } from './client.js';
import { cellKey, gamesKey, outboxKey, playerField, playersKey } from './keys.js';
import {
  type GameRecord,
  NO_TOTALS,
  type OutboxRecord,
  type PlayerRecord,
  readBooked,
  readGame,
  readOutbox,
  readPlayer,
  type Totals,
  totalsOfLast,
} from './records.js';
import { cellToken } from './scripts.js';

export interface Lookups {
  /** A player as of the last spin; undefined where it never spun. */
  findPlayer(cell: number, partnerId: number, playerId: string): Promise<PlayerRecord | undefined>;
  /** A game's counter and queue; undefined before its first block. */
  findGame(cell: number, gameId: number): Promise<GameRecord | undefined>;
  /** Id of the newest ledger entry in a cell's outbox, booked or not; 0 where there is none. */
  newestInOutbox(cell: number): Promise<bigint>;
  /** The cells that can't be dealt from at the given epochs. */
  closed(epochs: ReadonlyMap<number, string>): Promise<number[]>;
  /** Redis's clock, milliseconds since the epoch. */
  timeMs(): Promise<number>;
  /** The oldest ledger entries of a cell that are not trimmed from the outbox yet. */
  outbox(cell: number, limit: number): Promise<OutboxRecord[]>;
  /** Ledger entries of a cell that are not known to be in the ledger, and their bytes. */
  outboxTotals(cell: number): Promise<Totals>;
  /** Age of the oldest outbox entry of a cell; 0 where there is none. */
  outboxAgeSeconds(cell: number): Promise<number>;
}

/** The field `epoch` of some cells (scripts.ts, cellToken); null where there is none. */
export async function cellTokens(redis: RedisClient, cells: readonly number[]): Promise<(string | null)[]> {
  return Promise.all(cells.map((cell) => redis.hget(cellKey(cell), 'epoch')));
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
    async newestInOutbox(cell) {
      // Not the field `last`: after a rebuild it is above every entry that there is.
      const [newest] = (await redis.xrevrangeBuffer(outboxKey(cell), '+', '-', 'COUNT', 1)) as [
        Buffer,
        Buffer[],
      ][];
      return newest === undefined ? 0n : (readOutbox(newest[1][1]!).at(-1)?.id ?? 0n);
    },
    async closed(epochs) {
      const { serverId } = redis;
      if (serverId === undefined) throw new Error('Redis is not connected');
      const cells = [...epochs.keys()];
      const tokens = await cellTokens(redis, cells);
      return cells.filter((cell, i) => tokens[i] !== cellToken(epochs.get(cell)!, serverId));
    },
    async timeMs() {
      const [seconds, micros] = await redis.time();
      return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    },
    async outbox(cell, limit) {
      const batches = (await redis.xrangeBuffer(outboxKey(cell), '-', '+', 'COUNT', limit)) as [
        Buffer,
        Buffer[],
      ][];
      return batches.flatMap(([, fields]) => readOutbox(fields[1]!)).slice(0, limit);
    },
    async outboxTotals(cell) {
      const [last, booked] = await redis.hmgetBuffer(cellKey(cell), 'last', 'booked');
      if (!last) return NO_TOTALS;
      const all = totalsOfLast(last);
      const done = booked ? readBooked(booked).totals : NO_TOTALS;
      return { entries: all.entries - done.entries, bytes: all.bytes - done.bytes };
    },
    async outboxAgeSeconds(cell) {
      const [oldest] = await redis.xrange(outboxKey(cell), '-', '+', 'COUNT', 1);
      return oldest === undefined ? 0 : Math.max(0, Date.now() - Number.parseInt(oldest[0], 10)) / 1000;
    },
  };
}
