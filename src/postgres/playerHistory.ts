/**
 * A player's entries, newest first: along `previous_id` from an indexed entry (each 64th), or from the player's newest.
 *
 * Each statement has a range of ids, so that it plans and locks the partitions of a few days only, however many there are.
 */
import { idsIn } from '../domain/entryId.js';
import { ENTRY_KINDS, entryCodesSql } from '../domain/ledgerEntry.js';
import { raw, type Sql } from './client.js';
import { type EntryRow, entryOfRow, type LedgerEntry } from './ledger.js';

/** Looked over by one statement. */
const RANGE = idsIn(8 * 86_400_000);
const INDEXED_EACH = 64;
/** The kinds that have the entry number of the entry before. */
const UNNUMBERED = raw(entryCodesSql(({ takesEntryNumber }) => !takesEntryNumber));

export interface PlayerOfHistory {
  readonly partnerId: number;
  readonly playerId: string;
  readonly newest: { readonly id: bigint; readonly entryNumber: number };
  /** An id that is not above the player's first entry's. */
  readonly firstId: bigint;
}

/**
 * Spins (and, as number 1, the opening) of a player from a number downwards, newest first. The walk ends where the ledger
 * does: days that were dropped have no entries.
 */
export async function entriesDown(
  sql: Sql,
  player: PlayerOfHistory,
  fromNumber: number,
  count: number,
): Promise<LedgerEntry[]> {
  const lowest = fromNumber - count + 1;
  const entries: LedgerEntry[] = [];
  let next = await startOf(sql, player, fromNumber);
  while (next !== undefined && next > 0n) {
    const rows: EntryRow[] = await sql<EntryRow[]>`
      WITH RECURSIVE walk AS (
        SELECT l.* FROM ledger l WHERE l.entry_id = ${next}
        UNION ALL
        SELECT l.* FROM walk w
          JOIN ledger l ON l.entry_id = w.previous_id AND l.entry_id > ${next - RANGE} AND l.entry_id < ${next}
        WHERE w.entry_number > ${lowest} OR (w.entry_number = ${lowest} AND w.kind IN ${UNNUMBERED})
      )
      SELECT * FROM walk ORDER BY entry_id DESC`;
    for (const row of rows) {
      const entry = entryOfRow(row);
      if (entry.entryNumber <= fromNumber && ENTRY_KINDS[entry.kind].takesEntryNumber) entries.push(entry);
    }
    const last = rows.at(-1);
    const isDone =
      last === undefined || (last.entry_number <= lowest && entries.at(-1)?.id === last.entry_id);
    next = isDone ? undefined : last.previous_id;
  }
  return entries;
}

/**
 * Every entry of a player from one downwards, newest first: of all kinds. The walk ends where the ledger does.
 * @param fromId of one of the player's entries; of any other: nothing is found
 */
export async function statementDown(
  sql: Sql,
  { partnerId, playerId }: Pick<PlayerOfHistory, 'partnerId' | 'playerId'>,
  fromId: bigint,
  count: number,
): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  let next = fromId;
  while (next > 0n && entries.length < count) {
    const rows: EntryRow[] = await sql<EntryRow[]>`
      WITH RECURSIVE walk AS (
        SELECT l.*, 1 AS place FROM ledger l
        WHERE l.entry_id = ${next} AND l.partner_id = ${partnerId} AND l.player_id = ${playerId}
        UNION ALL
        SELECT l.*, w.place + 1 FROM walk w
          JOIN ledger l ON l.entry_id = w.previous_id AND l.entry_id > ${next - RANGE} AND l.entry_id < ${next}
        WHERE w.place < ${count - entries.length}
      )
      SELECT * FROM walk ORDER BY entry_id DESC`;
    const last = rows.at(-1);
    if (last === undefined) break;
    entries.push(...rows.map(entryOfRow));
    next = last.previous_id;
  }
  return entries;
}

/** Id of an entry of the player with this number, or up to 63 above it; undefined where the ledger has none any more. */
async function startOf(sql: Sql, player: PlayerOfHistory, fromNumber: number): Promise<bigint | undefined> {
  const { partnerId, playerId, newest, firstId } = player;
  if (newest.entryNumber < fromNumber + INDEXED_EACH) return newest.id;
  let to = newest.id;
  while (to >= firstId) {
    const [row] = await sql<{ entry_id: bigint; entry_number: number }[]>`
      SELECT entry_id, entry_number FROM ledger
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_number % ${raw(String(INDEXED_EACH))} = 0
        AND entry_number >= ${fromNumber} AND entry_id > ${to - RANGE} AND entry_id <= ${to}
      ORDER BY entry_number LIMIT 1`;
    if (row !== undefined && row.entry_number < fromNumber + INDEXED_EACH) return row.entry_id;
    to -= RANGE;
  }
  return undefined;
}
