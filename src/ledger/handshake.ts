/**
 * Is the Redis that we reach the one that the ledger knows? Asked for each cell before anything of it is written.
 *
 *   its epoch is this database's ──> and it is not behind the ledger ──> ready
 *   no epoch, nothing booked, nothing leased ──> installed: the epoch is written, which lets the scripts deal
 *   anything else (another database's, emptied, restored from an old copy) ──> lost
 */
import type { CellLease } from '../postgres/cells.js';
import type { Sql } from '../postgres/client.js';
import type { RedisClient } from '../redis/client.js';
import { cellKey, gamesKey } from '../redis/keys.js';
import { newestEntryId, readGame } from '../redis/records.js';

export type Handshake = 'ready' | 'installed' | 'lost';

/** Redis does not hold what the ledger has booked: the cell must not be written or dealt from. */
export class LostError extends Error {}

/** @returns `lost` where the cell must not be dealt from. */
export async function handshake(sql: Sql, redis: RedisClient, lease: CellLease): Promise<Handshake> {
  const { cell, token } = lease;
  const [epoch, last] = await redis.hmgetBuffer(cellKey(cell), 'epoch', 'last');
  if (epoch?.toString() === token) {
    if (!(await isBehind(sql, redis, lease, last))) return 'ready';
    // Its epoch would let the scripts deal what was dealt before: it is taken away.
    await redis.hset(cellKey(cell), 'epoch', 'behind');
    return 'lost';
  }
  if (epoch || lease.cursorId > 0n) return 'lost';
  const [leased] = await sql<object[]>`
    SELECT 1 FROM blocks JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE partners.cell = ${cell} LIMIT 1`;
  if (leased !== undefined) return 'lost';
  await redis.hset(cellKey(cell), 'epoch', token);
  return 'installed';
}

/** Redis knows fewer entries, or fewer outcomes dealt, than are booked: it was restored from an older copy. */
async function isBehind(
  sql: Sql,
  redis: RedisClient,
  { cell, cursorId }: CellLease,
  last: Buffer | null | undefined,
): Promise<boolean> {
  if (cursorId > 0n && (!last || newestEntryId(last, cell) < cursorId)) return true;
  const booked = await sql<{ game_id: number; next_index: bigint }[]>`
    SELECT game_id, next_index FROM game_progress JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE partners.cell = ${cell}`;
  if (booked.length === 0) return false;
  const records = await redis.hmgetBuffer(gamesKey(cell), ...booked.map((game) => String(game.game_id)));
  return booked.some((game, i) => {
    const record = records[i];
    return !record || BigInt(readGame(record).nextIndex) < game.next_index;
  });
}
