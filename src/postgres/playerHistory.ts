/**
 * A player's entries, newest first: along `previous_id` from an indexed entry (each 64th), or from the player's newest.
 *
 * Each statement has a range of ids, so that it plans and locks the partitions of a few days only, however many there are.
 */
import { idsIn } from '../domain/entryId.js';
import { ENTRY_KINDS, entryCodesSql } from '../domain/ledgerEntry.js';
import { raw, type Sql, safe } from './client.js';
import { type EntryRow, entryOfRow, findEntry, type LedgerEntry } from './ledger.js';

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
 * Spins, shares (and, as number 1, the opening) of a player from a number downwards, newest first. The walk ends where the ledger
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

// The spins among the entries ----------------------------------------------------------------------------------------

/** Rows that a walk looks at beyond the spins that are wanted, for the shares between them. */
const SHARES_BETWEEN = 64;

export interface SpinPage {
  /** Newest first. */
  readonly spins: readonly LedgerEntry[];
  /** Spins of the player in all. */
  readonly total: number;
  /** Spins that are newer than the page. */
  readonly skipped: number;
}

/** Which spins of a player: those behind so many of its newest, or those whose entry number is below one. */
export type SpinsFrom = { readonly skip: number } | { readonly belowNumber: number };

/** A page of a player's spins, newest first. Shares of communal progressives lie between them, and are not counted. */
export async function playerSpinPage(
  sql: Sql,
  player: PlayerOfHistory,
  from: SpinsFrom,
  limit: number,
): Promise<SpinPage> {
  const shares = await openShares(sql, player);
  // Entry 1 is the opening; every other one that has a number is a spin or a share.
  const entries = player.newest.entryNumber;
  const total = entries - 1 - shares.count;
  const skipped = 'skip' in from ? from.skip : await newerSpins(shares, entries, from.belowNumber);
  const spins: LedgerEntry[] = [];
  while (spins.length < limit && skipped + spins.length < total) {
    const newer = skipped + spins.length;
    const between = await shares.newerThan((number, newerShares) => entries - number - newerShares > newer);
    const wanted = limit - spins.length + Math.min(shares.count, SHARES_BETWEEN);
    const walked = await entriesDown(sql, player, entries - newer - between, wanted);
    const found = walked.filter(({ kind }) => ENTRY_KINDS[kind].history === 'spin');
    // What was older was dropped with its day.
    if (found.length === 0) break;
    spins.push(...found.slice(0, limit - spins.length));
  }
  return { spins, total, skipped };
}

/** Spins whose entry number is not below one. */
async function newerSpins(shares: Shares, entries: number, belowNumber: number): Promise<number> {
  const newer = Math.max(0, entries - belowNumber + 1);
  return newer - (await shares.newerThan((number) => number < belowNumber));
}

interface Shares {
  /** Up to the player's newest entry. */
  readonly count: number;
  /**
   * How many shares come before the first, the newest being the first looked at, of which something holds; it holds of all that are older,
   * too. @param holds is asked with the entry number of a share and how many shares are newer
   */
  newerThan(holds: (entryNumber: number, newerShares: number) => boolean): Promise<number>;
}

async function openShares(sql: Sql, { partnerId, playerId, newest }: PlayerOfHistory): Promise<Shares> {
  const [row] = await sql<{ count: bigint }[]>`
    SELECT count(*) AS count FROM communal_shares
    WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_id <= ${newest.id}`;
  const count = safe(row!.count);
  const numberOf = async (place: number): Promise<number> => {
    const [share] = await sql<{ entry_id: bigint }[]>`
      SELECT entry_id FROM communal_shares
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_id <= ${newest.id}
      ORDER BY entry_id DESC OFFSET ${place} LIMIT 1`;
    // A day that was dropped has no entries: they are older than all that there are.
    return (await findEntry(sql, share!.entry_id))?.entryNumber ?? 0;
  };
  return {
    count,
    async newerThan(holds) {
      const isBehind = async (place: number): Promise<boolean> => holds(await numberOf(place), place);
      // The nearest are wanted most often: they are looked for first.
      let low = 0;
      let high = 1;
      while (high <= count && !(await isBehind(high - 1))) {
        low = high;
        high *= 2;
      }
      high = Math.min(high - 1, count);
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        if (await isBehind(middle)) high = middle;
        else low = middle + 1;
      }
      return low;
    },
  };
}
