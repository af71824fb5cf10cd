/**
 * Reads spins and other ledger entries by player and by time.
 *
 * The entries of a player are read newest first, along `previous_id`. The walk starts at an indexed entry
 * (every 64th entry of a player) or at the player's newest entry. Each statement has a range of ids, so that
 * Postgres plans and locks the partitions of a few days only, regardless of the number of partitions.
 */

import { DAY_MS, dayOf, startOf } from '../../domain/days.js';
import { entryTimeMs, firstIdAt, idsIn } from '../../domain/entryId.js';
import type { EntryRow, LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS, entryCodesSql, isShownAsSpin } from '../../domain/ledgerEntry.js';
import { type LedgerWatermark, ledgerWatermark } from '../../engine/catalog/partners.store.js';
import { IS_SPIN, indexedDays } from '../../engine/ledger/ledger.store.js';
import { findEntry } from '../../engine/ledger/ledgerEntries.store.js';
import { allColumnsSql, entryOfRow } from '../../engine/ledger/ledgerRow.store.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';

const LEDGER_COLUMNS = raw(allColumnsSql('l'));
/** Range of entry ids that one statement searches: 8 days. */
const RANGE = idsIn(8 * 86_400_000);
const INDEXED_EACH = 64;
/** Kinds of entries that repeat the entry number of the previous entry. */
const UNNUMBERED = raw(entryCodesSql(({ takesEntryNumber }) => !takesEntryNumber));

export interface PlayerOfHistory {
  readonly partnerId: number;
  readonly playerId: string;
  readonly newest: { readonly id: bigint; readonly entryNumber: number };
  /** Lower bound for the id of the player's first entry. */
  readonly firstId: bigint;
}

/**
 * Returns spins and shares of a player (and the opening, which is number 1) from an entry number downwards,
 * newest first. The walk ends at the oldest entry in the ledger, because dropped days have no entries.
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
    const isDone = last === undefined || (last.entryNumber <= lowest && entries.at(-1)?.id === last.entryId);
    next = isDone ? undefined : last.previousId;
  }
  return entries;
}

/**
 * Returns the id of the player's entry with this number, or of an entry up to 63 numbers above it. Returns
 * undefined if the ledger no longer has such an entry.
 */
async function walkStart(sql: Sql, player: PlayerOfHistory, fromNumber: number): Promise<bigint | undefined> {
  const { partnerId, playerId, newest, firstId } = player;
  if (newest.entryNumber < fromNumber + INDEXED_EACH) return newest.id;
  let to = newest.id;
  while (to >= firstId) {
    const [row] = await sql<{ entryId: bigint; entryNumber: number }[]>`
      SELECT entry_id, entry_number FROM ledger
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_number % ${raw(String(INDEXED_EACH))} = 0
        AND entry_number >= ${fromNumber} AND entry_id > ${to - RANGE} AND entry_id <= ${to}
      ORDER BY entry_number LIMIT 1`;
    if (row !== undefined && row.entryNumber < fromNumber + INDEXED_EACH) return row.entryId;
    to -= RANGE;
  }
  return undefined;
}

// The spins among the entries -------------------------------------------------------------------------------

/** Rows that a walk reads in addition to the requested spins, to allow for shares between them. */
const SHARES_BETWEEN = 64;

export interface SpinPage {
  /** Spins of the page, newest first. */
  readonly spins: readonly LedgerEntry[];
  readonly total: number;
}

interface Shares {
  /** Number of the player's shares, up to the newest entry. */
  readonly count: number;
  /**
   * Returns how many shares are newer than the newest share for which the condition holds. If the condition
   * holds for a share, it also holds for all older shares.
   *
   * @param holds condition, called with the entry number of a share and the number of newer shares
   */
  newerThan(holds: (entryNumber: number, newerShares: number) => boolean): Promise<number>;
}

/**
 * Also returns the newest entry of the player in the dropped days, and its entry number. Both are 0 if no
 * entry of the player was dropped.
 */
async function openShares(
  sql: Sql,
  { partnerId, playerId, newest }: PlayerOfHistory,
): Promise<{
  readonly shares: Shares;
  readonly dropped: { readonly id: bigint; readonly entryNumber: number };
}> {
  const [row] = await sql<{ count: bigint; droppedTo: bigint; droppedNumber: number }[]>`
    SELECT dropped_to, dropped_number, (SELECT count(*) FROM communal_shares WHERE partner_id = ${partnerId}
        AND player_id = ${playerId} AND entry_id > dropped_to AND entry_id <= ${newest.id}) AS count
    FROM (SELECT coalesce(max(entry_id), 0) AS dropped_to, coalesce(max(entry_number), 0) AS dropped_number
      FROM boundary_players WHERE partner_id = ${partnerId} AND player_id = ${playerId}) AS dropped`;
  const { droppedTo } = row!;
  const count = safe(row!.count);
  const numberOf = async (place: number): Promise<number> => {
    const [share] = await sql<{ entryId: bigint }[]>`
      SELECT entry_id FROM communal_shares
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_id > ${droppedTo} AND entry_id <= ${newest.id}
      ORDER BY entry_id DESC OFFSET ${place} LIMIT 1`;
    // The day of the share may have been dropped since the number of shares was read. The entries of
    // that day are then older than all entries in the ledger.
    return (await findEntry(sql, share!.entryId))?.entryNumber ?? 0;
  };
  const shares: Shares = {
    count,
    async newerThan(holds) {
      const isBehind = async (place: number): Promise<boolean> => holds(await numberOf(place), place);
      // Pages near the newest entry are requested most often, so the search starts with the newest shares.
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
  return { shares, dropped: { id: droppedTo, entryNumber: row!.droppedNumber } };
}

export interface SpinRange extends EntryRange {
  readonly partnerId: number;
  readonly gameId: number | undefined;
}

export interface SpinsFound {
  /** Entries of the page, oldest first. */
  readonly entries: readonly LedgerEntry[];
  /** Id at which the next page begins. Undefined: the ledger currently has no more entries of the range. */
  readonly nextId: bigint | undefined;
}

export interface SpinsOfPartner extends SpinsFound {
  /** The watermark up to which the partner's ledger was complete. */
  readonly reach: LedgerWatermark;
}

/** Range of entry ids: `fromId` inclusive, `toId` exclusive. */
export interface EntryRange {
  readonly fromId: bigint;
  readonly toId: bigint;
}

export interface StatementPage {
  /** Entries of the page, newest first. */
  readonly entries: readonly LedgerEntry[];
  /** Entry at which the next page begins; undefined if the range has no older entries in the ledger. */
  readonly nextId: bigint | undefined;
}

/** Maximum number of entries that one page of a statement examines. */
const WALKED_MAX = 20_000;

/**
 * Returns the id of an entry of a player at or after an id, near that id if an indexed entry is near;
 * otherwise the id of the player's newest entry.
 */
async function entryAtOrAfter(
  sql: Sql,
  { partnerId, playerId, newestId }: { partnerId: number; playerId: string; newestId: bigint },
  id: bigint,
): Promise<bigint> {
  for (let lowId = id; lowId <= newestId; lowId += LOOKED_OVER) {
    const [row] = await sql<{ entryId: bigint }[]>`
      SELECT entry_id FROM ledger
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_number % ${raw(String(INDEXED_EACH))} = 0
        AND entry_id >= ${lowId} AND entry_id < ${lowId + LOOKED_OVER}
      ORDER BY entry_number LIMIT 1`;
    if (row !== undefined) return row.entryId;
  }
  return newestId;
}

export class SpinHistory {
  /** Days whose spins are known to be indexed by partner. */
  readonly #indexedDays = new Set<string>();

  constructor(private readonly sql: Sql) {}

  /**
   * Returns the entries of all kinds of a player in a range, newest first. The walk ends at the oldest entry
   * in the ledger. A page may be empty although the statement continues, because the number of entries that
   * a page examines is bounded.
   *
   * @param of.newestId id of the player's newest entry, which must be committed
   * @param cursor id of the player's entry at which the page begins, undefined: the newest entry of the
   * range. For any other id the page is empty.
   * @param limit maximum number of entries, at least 1
   */
  async statement(
    of: Pick<PlayerOfHistory, 'partnerId' | 'playerId'> & { readonly newestId: bigint },
    { fromId, toId }: EntryRange,
    cursor: bigint | undefined,
    limit: number,
  ): Promise<StatementPage> {
    const entries: LedgerEntry[] = [];
    let next = cursor ?? (await entryAtOrAfter(this.sql, of, toId));
    for (let examined = 0; next > 0n && next >= fromId && examined < WALKED_MAX; ) {
      // A walk begins above the range if no indexed entry is near its end.
      const wanted = next >= toId ? INDEXED_EACH + limit : limit - entries.length;
      const walked = await this.entriesFrom(of, next, wanted);
      if (walked.length === 0) return { entries, nextId: undefined };
      examined += walked.length;
      const inRange = walked.filter(({ id }) => id >= fromId && id < toId).slice(0, limit - entries.length);
      entries.push(...inRange);
      next = (entries.length === limit ? entries : walked).at(-1)!.previousId;
      if (entries.length === limit) break;
    }
    return { entries, nextId: next > 0n && next >= fromId ? next : undefined };
  }

  /**
   * Returns the entries of all kinds of a player from one entry downwards, newest first. The walk ends at the
   * oldest entry in the ledger.
   *
   * @param fromId id of one of the player's entries; for any other id the result is empty
   */
  async entriesFrom(
    { partnerId, playerId }: Pick<PlayerOfHistory, 'partnerId' | 'playerId'>,
    fromId: bigint,
    count: number,
  ): Promise<LedgerEntry[]> {
    const entries: LedgerEntry[] = [];
    let next = fromId;
    while (next > 0n && entries.length < count) {
      const rows: EntryRow[] = await this.sql<EntryRow[]>`
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
      next = last.previousId;
    }
    return entries;
  }

  /**
   * Returns one page of a player's spins, newest first. Shares of communal progressives lie between spins and
   * are not counted.
   *
   * @param skipped number of newer spins before the page
   */
  async spinPage(player: PlayerOfHistory, skipped: number, limit: number): Promise<SpinPage> {
    const { dropped, shares } = await openShares(this.sql, player);
    // Entry 1 is the opening. Every other numbered entry is a spin or a share.
    const entries = player.newest.entryNumber;
    const total = entries - Math.max(1, dropped.entryNumber) - shares.count;
    const spins: LedgerEntry[] = [];
    while (spins.length < limit && skipped + spins.length < total) {
      const newer = skipped + spins.length;
      const between = await shares.newerThan((number, newerShares) => entries - number - newerShares > newer);
      const wanted = limit - spins.length + Math.min(shares.count, SHARES_BETWEEN);
      const walked = await entriesDown(this.sql, player, entries - newer - between, wanted);
      const found = walked.filter(isShownAsSpin);
      // The walk found no older spins, because these spins were dropped with their days.
      if (found.length === 0) break;
      spins.push(...found.slice(0, limit - spins.length));
    }
    return { spins, total };
  }

  /**
   * Returns one page of a partner's spins by time, oldest first. On days without an index of the feed, a page
   * scans the entries of all partners, up to a maximum number of rows. `nextId` is the position that the scan
   * reached, even if the page is empty.
   *
   * A page ends where the partner's ledger is complete ({@link LedgerWatermark}). No entries are added below
   * that watermark, so a page skips nothing, even if entries are committed during the read.
   *
   * @param limit maximum number of entries, at least 1
   */
  async spinsByTime(range: SpinRange, limit: number): Promise<SpinsOfPartner> {
    const { partnerId, gameId } = range;
    // The watermark is read before the rows, so that every row up to it is visible.
    const reach = await ledgerWatermark(this.sql, partnerId);
    const toId = range.toId > reach.toId ? reach.toId + 1n : range.toId;
    const { droppedDay } = reach;
    const keptId = droppedDay === null ? 0n : firstIdAt(startOf(droppedDay) + DAY_MS);
    const fromId = range.fromId > keptId ? range.fromId : keptId;
    const entries: LedgerEntry[] = [];
    let examined = 0;
    let windowRows = Math.max(WINDOW_MIN, limit * 2);
    const days = await daysOfSpins(this.sql, { ...range, fromId }, toId);
    await this.#findIndexes(days);
    for (const day of days) {
      const isIndexed = this.#indexedDays.has(day);
      // The index finds only the rows that are returned.
      const isExact = isIndexed && gameId === undefined;
      const dayMs = startOf(day);
      const endId = least(firstIdAt(dayMs + DAY_MS), toId);
      let lowId = fromId > firstIdAt(dayMs) ? fromId : firstIdAt(dayMs);
      while (lowId < endId) {
        if (examined >= EXAMINED_MAX) return { entries, nextId: lowId, reach };
        const highId = isExact
          ? endId
          : await idAfter(this.sql, lowId, endId, windowRows, isIndexed ? partnerId : undefined);
        // The query reads one row more than requested, which shows whether further rows exist.
        const rows = await this.sql<EntryRow[]>`
          SELECT ${LEDGER_COLUMNS} FROM ledger l WHERE entry_id >= ${lowId} AND entry_id < ${highId} AND partner_id = ${partnerId}
            AND ${IS_SPIN} AND (${gameId ?? null}::int IS NULL OR game_id = ${gameId ?? null})
          ORDER BY entry_id LIMIT ${limit + 1 - entries.length}`;
        entries.push(...rows.map(entryOfRow));
        if (entries.length > limit)
          return { entries: entries.slice(0, limit), nextId: entries[limit]!.id, reach };
        if (!isExact) {
          examined += windowRows;
          windowRows *= WINDOW_GROWTH;
        }
        lowId = highId;
      }
    }
    const isCut = days.length === DAYS_MAX;
    return { entries, nextId: isCut ? firstIdAt(startOf(days.at(-1)!) + DAY_MS) : undefined, reach };
  }

  async #findIndexes(days: readonly string[]): Promise<void> {
    const unknown = days.filter((day) => !this.#indexedDays.has(day));
    if (unknown.length === 0) return;
    if (this.#indexedDays.size > 2 * DAYS_MAX) this.#indexedDays.clear();
    for (const day of await indexedDays(this.sql, unknown)) this.#indexedDays.add(day);
  }

  /**
   * Returns one page of a player's spins by time, along the player's indexed entries.
   *
   * @param player the player in Redis, whose newest entry is committed
   */
  async playerSpinsByTime(player: PlayerOfHistory, range: SpinRange, limit: number): Promise<SpinsFound> {
    const { newest, firstId } = player;
    const { toId, gameId } = range;
    const fromId = range.fromId > firstId ? range.fromId : firstId;
    if (fromId > newest.id) return { entries: [], nextId: undefined };
    const entries: LedgerEntry[] = [];
    let nextId = fromId;
    let topNumber = (await indexedNumberFrom(this.sql, player, fromId)) ?? newest.entryNumber;
    for (let walks = 0; walks < WALKS_MAX; walks++) {
      const walked = await entriesDown(this.sql, player, topNumber, INDEXED_EACH);
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

/** Maximum number of rows of all partners that one page scans. The scan takes a tenth of a second. */
const EXAMINED_MAX = 250_000;
/** Rows of the first scan, and the factor by which each further scan grows if too few spins were found. */
const WINDOW_MIN = 1000;
const WINDOW_GROWTH = 4;
/**
 * Maximum number of walks along a player's entries for one page. Each walk has {@link INDEXED_EACH} entries.
 */
const WALKS_MAX = 32;
/** Range of entry ids in which one statement looks for an indexed entry: 8 days. */
const LOOKED_OVER = idsIn(8 * DAY_MS);
/** Maximum number of days that one page searches. */
const DAYS_MAX = 400;

async function indexedNumberFrom(
  sql: Sql,
  { partnerId, playerId, newest }: PlayerOfHistory,
  fromId: bigint,
): Promise<number | undefined> {
  // The search covers a few days at a time, because each statement locks only the partitions of its range.
  for (let lowId = fromId; lowId <= newest.id; lowId += LOOKED_OVER) {
    const [row] = await sql<{ entryNumber: number }[]>`
      SELECT entry_number FROM ledger
      WHERE partner_id = ${partnerId} AND player_id = ${playerId} AND entry_number % ${raw(String(INDEXED_EACH))} = 0
        AND entry_id >= ${lowId} AND entry_id < ${lowId + LOOKED_OVER} AND ${IS_SPIN}
      ORDER BY entry_number LIMIT 1`;
    if (row !== undefined) return row.entryNumber;
  }
  return undefined;
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

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

/**
 * Returns the id that is the given number of rows after `lowId`, but at most the end of the range.
 * @param partnerId counts only the spins of this partner, along the index of the feed
 */
async function idAfter(
  sql: Sql,
  lowId: bigint,
  endId: bigint,
  rows: number,
  partnerId: number | undefined,
): Promise<bigint> {
  const ofPartner = async (): Promise<{ entryId: bigint }[]> => sql`
    SELECT entry_id FROM ledger WHERE partner_id = ${partnerId} AND entry_id >= ${lowId} AND entry_id < ${endId} AND ${IS_SPIN}
    ORDER BY entry_id OFFSET ${rows} LIMIT 1`;
  const ofAll = async (): Promise<{ entryId: bigint }[]> => sql`
    SELECT entry_id FROM ledger WHERE entry_id >= ${lowId} AND entry_id < ${endId}
    ORDER BY entry_id OFFSET ${rows} LIMIT 1`;
  const [row] = await (partnerId === undefined ? ofAll() : ofPartner());
  return row?.entryId ?? endId;
}
