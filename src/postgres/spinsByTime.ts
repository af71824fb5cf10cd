/**
 * A partner's spins by time, oldest first, in pages. There is no index for it, since each costs every spin something: a page reads the
 * primary key along, over the days on which the partner spun, and a bounded number of rows. What it has come to is told, so
 * that the next page goes on there, also where it found nothing.
 *
 * A page ends where the partner's ledger is complete (partnerLedger.ts): nothing is added below, so that it skips nothing, whatever is
 * booked meanwhile.
 */
import { entryTimeMs, firstIdAt, idsIn } from '../domain/entryId.js';
import { ENTRY_KINDS, entryCodesSql } from '../domain/ledgerEntry.js';
import { DAY_MS, dayOf, startOf } from '../domain/settlement.js';
import { raw, type Sql } from './client.js';
import { type EntryRow, entryOfRow, type LedgerEntry } from './ledger.js';
import { type LedgerReach, ledgerReach } from './partnerLedger.js';
import { entriesDown, type PlayerOfHistory } from './playerHistory.js';

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
  readonly reach: LedgerReach;
}

/** Rows of all partners that a page looks at: a tenth of a second. */
const EXAMINED_MAX = 250_000;
/** Looked at first, and this many times more each time that too few were found. */
const WINDOW_MIN = 1000;
const WINDOW_GROWTH = 4;
/** Walks along a player's entries, {@link INDEXED_EACH} each, for one page. */
const WALKS_MAX = 32;
const INDEXED_EACH = 64;
/** Looked over for an indexed entry by one statement. */
const LOOKED_OVER = idsIn(8 * DAY_MS);
/** Days that one page looks for. */
const DAYS_MAX = 400;
const SPINS = raw(entryCodesSql(({ history }) => history === 'spin'));

/** @param limit the most entries, at least 1 */
export async function spinsByTime(sql: Sql, range: SpinRange, limit: number): Promise<SpinsOfPartner> {
  const { partnerId, fromId, gameId } = range;
  // Read before the rows: every row up to it is there.
  const reach = await ledgerReach(sql, partnerId);
  const toId = range.toId > reach.toId ? reach.toId + 1n : range.toId;
  const entries: LedgerEntry[] = [];
  let examined = 0;
  let windowRows = Math.max(WINDOW_MIN, limit * 2);
  const days = await daysOfSpins(sql, range, toId);
  for (const day of days) {
    const dayMs = startOf(day);
    const endId = least(firstIdAt(dayMs + DAY_MS), toId);
    let lowId = fromId > firstIdAt(dayMs) ? fromId : firstIdAt(dayMs);
    while (lowId < endId) {
      if (examined >= EXAMINED_MAX) return { entries, nextId: lowId, reach };
      const highId = await idAfter(sql, lowId, endId, windowRows);
      // One more than is wanted tells whether there are more.
      const rows = await sql<EntryRow[]>`
        SELECT * FROM ledger WHERE entry_id >= ${lowId} AND entry_id < ${highId} AND partner_id = ${partnerId}
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
export async function playerSpinsByTime(
  sql: Sql,
  player: PlayerOfHistory,
  range: SpinRange,
  limit: number,
): Promise<SpinsFound> {
  const { newest, firstId } = player;
  const { toId, gameId } = range;
  const fromId = range.fromId > firstId ? range.fromId : firstId;
  if (fromId > newest.id) return { entries: [], nextId: undefined };
  const entries: LedgerEntry[] = [];
  let nextId = fromId;
  let topNumber = (await indexedNumberFrom(sql, player, fromId)) ?? newest.entryNumber;
  for (let walks = 0; walks < WALKS_MAX; walks++) {
    const walked = await entriesDown(sql, player, topNumber, INDEXED_EACH);
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
