/**
 * Spins and other entries of the ledger by player and by time.
 *
 * A player's entries, newest first, are read along `previous_id` from an indexed entry (each 64th) or from the player's newest.
 * Each statement has a range of ids, so that it plans and locks the partitions of a few days only, however many there are.
 */

import { DAY_MS, dayOf, startOf } from '../../domain/days.js';
import { entryTimeMs, firstIdAt, idsIn } from '../../domain/entryId.js';
import type { EntryRow, LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS, entryCodesSql } from '../../domain/ledgerEntry.js';
import { type LedgerWatermark, ledgerWatermark } from '../../engine/catalog/partners.store.js';
import { findEntry } from '../../engine/ledger/ledgerEntries.store.js';
import { allColumnsSql, entryOfRow } from '../../engine/ledger/ledgerRow.store.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';

/** Of the ledger as `l`. */
const LEDGER_COLUMNS = raw(allColumnsSql('l'));
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
  let next = await walkStart(sql, player, fromNumber);
  while (next !== undefined && next > 0n) {
    const rows: EntryRow[] = await sql<EntryRow[]>`
      WITH RECURSIVE walk AS (
        SELECT ${LEDGER_COLUMNS} FROM ledger l WHERE l.entry_id = ${next}
        UNION ALL
        SELECT ${LEDGER_COLUMNS} FROM walk w
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

/** Id of an entry of the player with this number, or up to 63 above it; undefined where the ledger has none any more. */
async function walkStart(sql: Sql, player: PlayerOfHistory, fromNumber: number): Promise<bigint | undefined> {
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

async function openShares(
  sql: Sql,
  { partnerId, playerId, newest }: PlayerOfHistory,
  droppedTo: bigint,
): Promise<Shares> {
  const [row] = await sql<{ count: bigint }[]>`
    SELECT count(*) AS count FROM communal_shares
    WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_id > ${droppedTo} AND entry_id <= ${newest.id}`;
  const count = safe(row!.count);
  const numberOf = async (place: number): Promise<number> => {
    const [share] = await sql<{ entry_id: bigint }[]>`
      SELECT entry_id FROM communal_shares
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_id > ${droppedTo} AND entry_id <= ${newest.id}
      ORDER BY entry_id DESC OFFSET ${place} LIMIT 1`;
    // A day that was dropped meanwhile has no entries: they are older than all that there are.
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

/** Which spins of a partner are wanted. */
export interface SpinRange {
  readonly partnerId: number;
  /** Entry ids from here, … */
  readonly fromId: bigint;
  /** … and below this. */
  readonly toId: bigint;
  readonly gameId: number | undefined;
}

export interface SpinsFound {
  /** Oldest first. */
  readonly entries: readonly LedgerEntry[];
  /** Where the next page begins; undefined: the ledger has no more of the range now. */
  readonly nextId: bigint | undefined;
}

export interface SpinsOfPartner extends SpinsFound {
  /** How far the partner's ledger was complete. */
  readonly reach: LedgerWatermark;
}

/** The newest entry of a player that was dropped with its day, and its number: 0 where none was. */
async function newestDropped(
  sql: Sql,
  { partnerId, playerId }: PlayerOfHistory,
): Promise<{ readonly id: bigint; readonly entryNumber: number }> {
  const [row] = await sql<{ entry_id: bigint; entry_number: number }[]>`
    SELECT entry_id, entry_number FROM boundary_players WHERE partner_id = ${partnerId} AND player_id = ${playerId}`;
  return { id: row?.entry_id ?? 0n, entryNumber: row?.entry_number ?? 0 };
}

/** Spins and entries by player and by time. */
export class SpinHistory {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Every entry of a player from one downwards, newest first: of all kinds. The walk ends where the ledger does.
   * @param fromId of one of the player's entries; of any other: nothing is found
   */
  async statement(
    { partnerId, playerId }: Pick<PlayerOfHistory, 'partnerId' | 'playerId'>,
    fromId: bigint,
    count: number,
  ): Promise<LedgerEntry[]> {
    const entries: LedgerEntry[] = [];
    let next = fromId;
    while (next > 0n && entries.length < count) {
      const rows: EntryRow[] = await this.#sql<EntryRow[]>`
        WITH RECURSIVE walk AS (
          SELECT ${LEDGER_COLUMNS}, 1 AS place FROM ledger l
          WHERE l.entry_id = ${next} AND l.partner_id = ${partnerId} AND l.player_id = ${playerId}
          UNION ALL
          SELECT ${LEDGER_COLUMNS}, w.place + 1 FROM walk w
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

  /**
   * A page of a player's spins, newest first. Shares of communal progressives lie between them, and are not counted.
   * @param skipped spins that are newer than the page
   */
  async spinPage(player: PlayerOfHistory, skipped: number, limit: number): Promise<SpinPage> {
    const dropped = await newestDropped(this.#sql, player);
    const shares = await openShares(this.#sql, player, dropped.id);
    // Entry 1 is the opening; every other one that has a number is a spin or a share.
    const entries = player.newest.entryNumber;
    const total = entries - Math.max(1, dropped.entryNumber) - shares.count;
    const spins: LedgerEntry[] = [];
    while (spins.length < limit && skipped + spins.length < total) {
      const newer = skipped + spins.length;
      const between = await shares.newerThan((number, newerShares) => entries - number - newerShares > newer);
      const wanted = limit - spins.length + Math.min(shares.count, SHARES_BETWEEN);
      const walked = await entriesDown(this.#sql, player, entries - newer - between, wanted);
      const found = walked.filter(({ kind }) => ENTRY_KINDS[kind].history === 'spin');
      // What was older was dropped with its day.
      if (found.length === 0) break;
      spins.push(...found.slice(0, limit - spins.length));
    }
    return { spins, total };
  }

  /**
   * A page of a partner's spins by time, oldest first. There is no index by partner and time, since it would cost every spin
   * something: a page scans the primary key over the days on which the partner spun, a bounded number of rows. `nextId` says how far
   * it came, also where it found nothing.
   *
   * A page ends where the partner's ledger is complete ({@link LedgerWatermark}). Nothing is added below that, so a page skips nothing,
   * whatever is booked meanwhile.
   * @param limit the most entries, at least 1
   */
  async spinsByTime(range: SpinRange, limit: number): Promise<SpinsOfPartner> {
    const { partnerId, fromId, gameId } = range;
    // Read before the rows: every row up to it is there.
    const reach = await ledgerWatermark(this.#sql, partnerId);
    const toId = range.toId > reach.toId ? reach.toId + 1n : range.toId;
    const entries: LedgerEntry[] = [];
    let examined = 0;
    let windowRows = Math.max(WINDOW_MIN, limit * 2);
    const days = await daysOfSpins(this.#sql, range, toId);
    for (const day of days) {
      const dayMs = startOf(day);
      const endId = least(firstIdAt(dayMs + DAY_MS), toId);
      let lowId = fromId > firstIdAt(dayMs) ? fromId : firstIdAt(dayMs);
      while (lowId < endId) {
        if (examined >= EXAMINED_MAX) return { entries, nextId: lowId, reach };
        const highId = await idAfter(this.#sql, lowId, endId, windowRows);
        // One more than is wanted tells whether there are more.
        const rows = await this.#sql<EntryRow[]>`
          SELECT ${LEDGER_COLUMNS} FROM ledger l WHERE entry_id >= ${lowId} AND entry_id < ${highId} AND partner_id = ${partnerId}
            AND kind IN ${SPINS} AND (${gameId ?? null}::int IS NULL OR game_id = ${gameId ?? null})
          ORDER BY entry_id LIMIT ${limit + 1 - entries.length}`;
        entries.push(...rows.map(entryOfRow));
        if (entries.length > limit)
          return { entries: entries.slice(0, limit), nextId: entries[limit]!.id, reach };
        examined += windowRows;
        windowRows *= WINDOW_GROWTH;
        lowId = highId;
      }
    }
    const isCut = days.length === DAYS_MAX;
    return { entries, nextId: isCut ? firstIdAt(startOf(days.at(-1)!) + DAY_MS) : undefined, reach };
  }

  /**
   * The same of one player: along its entries, which are indexed.
   * @param player as Redis has it; its newest entry is booked
   */
  async playerSpinsByTime(player: PlayerOfHistory, range: SpinRange, limit: number): Promise<SpinsFound> {
    const { newest, firstId } = player;
    const { toId, gameId } = range;
    const fromId = range.fromId > firstId ? range.fromId : firstId;
    if (fromId > newest.id) return { entries: [], nextId: undefined };
    const entries: LedgerEntry[] = [];
    let nextId = fromId;
    let topNumber = (await indexedNumberFrom(this.#sql, player, fromId)) ?? newest.entryNumber;
    for (let walks = 0; walks < WALKS_MAX; walks++) {
      const walked = await entriesDown(this.#sql, player, topNumber, INDEXED_EACH);
      for (const entry of walked.reverse()) {
        if (entry.id < nextId || !isShownAsSpin(entry)) continue;
        if (entry.id >= toId) return { entries, nextId: undefined };
        if (gameId !== undefined && entry.gameId !== gameId) continue;
        if (entries.length === limit) return { entries, nextId: entry.id };
        entries.push(entry);
      }
      if (topNumber === newest.entryNumber) return { entries, nextId: undefined };
      topNumber = Math.min(topNumber + INDEXED_EACH, newest.entryNumber);
      nextId = (walked.at(-1)?.id ?? newest.id) + 1n;
    }
    return { entries, nextId };
  }
}

/** Rows of all partners that a page looks at: a tenth of a second. */
const EXAMINED_MAX = 250_000;
/** Looked at first, and this many times more each time that too few were found. */
const WINDOW_MIN = 1000;
const WINDOW_GROWTH = 4;
/** Walks along a player's entries, {@link INDEXED_EACH} each, for one page. */
const WALKS_MAX = 32;
/** Looked over for an indexed entry by one statement. */
const LOOKED_OVER = idsIn(8 * DAY_MS);
/** Days that one page looks for. */
const DAYS_MAX = 400;
const SPINS = raw(entryCodesSql(({ history }) => history === 'spin'));

const isShownAsSpin = ({ kind }: LedgerEntry): boolean => ENTRY_KINDS[kind].history === 'spin';

/** The first entry number of a player that is indexed, at or after an id. */
async function indexedNumberFrom(
  sql: Sql,
  { partnerId, playerId, newest }: PlayerOfHistory,
  fromId: bigint,
): Promise<number | undefined> {
  // A few days at a time: each statement locks the partitions of its range only.
  for (let lowId = fromId; lowId <= newest.id; lowId += LOOKED_OVER) {
    const [row] = await sql<{ entry_number: number }[]>`
      SELECT entry_number FROM ledger
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_number % ${raw(String(INDEXED_EACH))} = 0
        AND entry_id >= ${lowId} AND entry_id < ${lowId + LOOKED_OVER} AND kind IN ${SPINS}
      ORDER BY entry_number LIMIT 1`;
    if (row !== undefined) return row.entry_number;
  }
  return undefined;
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** The days of a range on which the partner, or its game, spun. */
async function daysOfSpins(sql: Sql, range: SpinRange, toId: bigint): Promise<string[]> {
  const { partnerId, fromId, gameId } = range;
  if (fromId >= toId) return [];
  const [first, last] = [dayOf(entryTimeMs(fromId)), dayOf(entryTimeMs(toId - 1n))];
  if (first === last) return [first];
  const rows = await sql<{ day: string }[]>`
    SELECT DISTINCT day::text
    FROM (SELECT partner_id, day, game_id FROM game_days UNION ALL SELECT partner_id, day, game_id FROM sandbox_days) d
    WHERE partner_id = ${partnerId} AND day BETWEEN ${first}::date AND ${last}::date
      AND (${gameId ?? null}::int IS NULL OR game_id = ${gameId ?? null})
    ORDER BY 1 LIMIT ${DAYS_MAX}`;
  return rows.map(({ day }) => day);
}

/** The id that comes so many rows after one; the end where that comes before. */
async function idAfter(sql: Sql, lowId: bigint, endId: bigint, rows: number): Promise<bigint> {
  const [row] = await sql<{ entry_id: bigint }[]>`
    SELECT entry_id FROM ledger WHERE entry_id >= ${lowId} AND entry_id < ${endId}
    ORDER BY entry_id OFFSET ${rows} LIMIT 1`;
  return row?.entry_id ?? endId;
}
