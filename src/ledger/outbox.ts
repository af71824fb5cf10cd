/** The outbox of a cell as its owner sees it: what is booked is trimmed, and the mark says how far that is. */
import { streamIdOf } from '../domain/entryId.js';
import type { RedisClient } from '../redis/client.js';
import { cellKey, outboxKey } from '../redis/keys.js';
import { NO_TOTALS, type Totals, totalsBefore, totalsOfLast, writeBooked } from '../redis/records.js';
import type { Scripts } from '../redis/scripts.js';

/** Removes what the ledger has, up to a cursor (with); a trim that fails is made up for by the next one. */
export async function trimOutbox(redis: RedisClient, cell: number, cursor: bigint): Promise<void> {
  await redis.call('XTRIM', outboxKey(cell), 'MINID', streamIdOf(cursor + 1n));
}

/**
 * Notes how far the outbox is booked: from this the spin script knows how much waits, and a handshake whether the
 * ledger has lost what it had.
 * @throws OutrunError where a later owner has written.
 */
export async function markBooked(
  scripts: Scripts,
  owner: { cell: number; fence: bigint },
  cursor: bigint,
  totals: Totals,
): Promise<void> {
  await scripts.fencedSet(owner, cellKey(owner.cell), ['booked', writeBooked({ id: cursor, totals })]);
}

/** The totals up to a cursor: those before the first entry that follows, or those of the newest where none does. */
export async function totalsAt(redis: RedisClient, cell: number, cursor: bigint): Promise<Totals> {
  // In this order: what is added in between shows as an entry that follows.
  const last = await redis.hgetBuffer(cellKey(cell), 'last');
  const [next] = (await redis.xrangeBuffer(outboxKey(cell), `(${streamIdOf(cursor)}`, '+', 'COUNT', 1)) as [
    Buffer,
    Buffer[],
  ][];
  if (next !== undefined) return totalsBefore(next[1]) ?? NO_TOTALS;
  return last === null ? NO_TOTALS : totalsOfLast(last);
}

/** The mark for a cursor that another owner booked up to. */
export async function markOf(redis: RedisClient, cell: number, cursor: bigint): Promise<Buffer> {
  return writeBooked({ id: cursor, totals: await totalsAt(redis, cell, cursor) });
}
