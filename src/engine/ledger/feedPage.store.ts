/**
 * Reads a page of a table that has an index by partner and entry id, oldest first: rounds and adjustments.
 * Spins have no such index (spinHistory.store.ts).
 */
import type { Sql } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';
import { type LedgerWatermark, ledgerWatermark } from '../catalog/partners.store.js';

export interface EntryRange {
  readonly partnerId: number;
  /** First entry id of the range, inclusive. */
  readonly fromId: bigint;
  /** Entry id at the end of the range, exclusive. */
  readonly toId: bigint;
  readonly gameId: number | undefined;
  readonly playerId: string | undefined;
}

export interface FeedPage<Item> {
  /** Items of the page, oldest first. */
  readonly items: readonly Item[];
  /** Id at which the next page begins. Undefined: the ledger currently has no more items of the range. */
  readonly nextId: bigint | undefined;
  /** The watermark up to which the partner's ledger was complete. */
  readonly reach: LedgerWatermark;
}

/** A table of the feed and its column with the entry id. */
type FeedTable = 'rounds.deal_id' | 'adjustments.entry_id';

/** Maximum number of a partner's rows that one page with a filter examines. */
const EXAMINED_MAX = 10_000;

/**
 * Reads one page of a partner's rows in the order of their entry ids. A page ends where the partner's ledger
 * is complete ({@link LedgerWatermark}). No entries are added below that watermark, so a page skips nothing.
 * @param limit maximum number of items, at least 1
 * @param rowsOf reads the first `count` matching rows in a range of ids; `toId` is exclusive
 */
export async function feedPageOf<Row>(
  sql: Sql,
  table: FeedTable,
  range: EntryRange,
  limit: number,
  {
    rowsOf,
    idOf,
  }: {
    readonly rowsOf: (fromId: bigint, toId: bigint, count: number) => Promise<readonly Row[]>;
    readonly idOf: (row: Row) => bigint;
  },
): Promise<FeedPage<Row>> {
  // The watermark is read before the rows, so that every row up to it is visible.
  const reach = await ledgerWatermark(sql, range.partnerId);
  const { fromId } = range;
  const toId = range.toId > reach.toId ? reach.toId + 1n : range.toId;
  if (fromId >= toId) return { items: [], nextId: undefined, reach };
  const isFiltered = range.gameId !== undefined || range.playerId !== undefined;
  const cutId = isFiltered ? await idAfter(sql, table, range.partnerId, fromId, toId) : undefined;
  const rows = await rowsOf(fromId, cutId ?? toId, limit + 1);
  const nextId = rows.length > limit ? idOf(rows[limit]!) : cutId;
  return { items: rows.slice(0, limit), nextId, reach };
}

/** Returns the id of the first row that a page with a filter does not examine; undefined if there is none. */
async function idAfter(
  sql: Sql,
  table: FeedTable,
  partnerId: number,
  fromId: bigint,
  toId: bigint,
): Promise<bigint | undefined> {
  const [name, column] = table.split('.').map(raw) as [ReturnType<typeof raw>, ReturnType<typeof raw>];
  const [row] = await sql<{ id: bigint }[]>`
    SELECT ${column} AS id FROM ${name} WHERE partner_id = ${partnerId} AND ${column} >= ${fromId} AND ${column} < ${toId}
    ORDER BY ${column} OFFSET ${EXAMINED_MAX} LIMIT 1`;
  return row?.id;
}
