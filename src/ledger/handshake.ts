/**
 * Is the Redis that we reach the one that the ledger knows? Asked for each cell before anything of it is written.
 * A cell of a new database is installed: its epoch is what lets the scripts deal.
 */
import type { CellLease } from '../postgres/cells.js';
import type { Sql } from '../postgres/client.js';
import type { RedisClient } from '../redis/client.js';
import { cellKey } from '../redis/keys.js';

export type Handshake = 'ready' | 'installed' | 'lost';

/** `lost`: Redis does not hold what the ledger has booked; the cell must not be dealt from. */
export async function handshake(sql: Sql, redis: RedisClient, lease: CellLease): Promise<Handshake> {
  const epoch = await redis.hget(cellKey(lease.cell), 'epoch');
  if (epoch === lease.epoch.toString()) return 'ready';
  if (epoch !== null || lease.cursorId > 0n) return 'lost';
  const [leased] = await sql`
    SELECT 1 FROM blocks JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE partners.cell = ${lease.cell} LIMIT 1`;
  if (leased !== undefined) return 'lost';
  await redis.hset(cellKey(lease.cell), 'epoch', lease.epoch.toString());
  return 'installed';
}
