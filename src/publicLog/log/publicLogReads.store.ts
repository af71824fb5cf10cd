/**
 * Reads the public log: without openings for the public, with openings for the partners who own the games.
 */
import { GROUP_LEAVES, type KeptParts, keptFor } from '../../domain/publicLog/blockTree.js';
import type { Opening } from '../../domain/publicLog/openings.js';
import { openColumn } from '../../engine/blocks/blockSeals.store.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, rowsOf, safe } from '../../postgres/statements.js';
import { type OpeningRow, openingOf } from './publicLog.store.js';

export interface Published {
  readonly logId: number;
  readonly origin: string;
  readonly vkeys: readonly string[];
  /** Public part of the workers' policy: witnesses, groups and quorum; null if there is none. */
  readonly policy: string | null;
  readonly size: number;
  /** Text of the newest published checkpoint. */
  readonly note: string;
}

export interface LoggedEntry {
  readonly opening: Opening;
  readonly logId: number;
  readonly logIndex: number;
  readonly loggedAt: Date;
  readonly salt: Buffer;
}

/** Checkpoint that covers an entry and proves that the log includes it. */
export type Covering = Pick<Published, 'size' | 'note'>;

/** Log entry in a list, with the state of its block. */
export interface ListedEntry extends LoggedEntry {
  /**
   * For a block: true if no round of the block is open and, in addition, all its indices are committed or
   * voided, or its raffle is closed.
   */
  readonly isDone: boolean;
  /** For a block: true if at least one of its indices was dealt or voided. */
  readonly isBegun: boolean;
}

/** Part of a block with the data of its leaves. */
export interface BlockPart {
  readonly count: number;
  readonly seed: Buffer;
  readonly nonce: Buffer;
  /** Stored hashes of the block's Merkle tree. */
  readonly kept: KeptParts;
  /** True if the outcomes were removed. They must be drawn again from the seed, and `parts` is empty. */
  readonly isRemoved: boolean;
  /** Packed outcomes (for shoes: seeds) of groups of leaves, by the position of the first leaf. */
  readonly parts: ReadonlyMap<number, Buffer>;
}

type EntryRow = OpeningRow & {
  labelKey: Buffer;
  logId: number;
  logIndex: bigint;
  loggedAt: Date;
  salt: Buffer;
};

/** Columns of an entry `e`, of its game `g` and, if the entry belongs to a block, of its block `b`. */
const ENTRY_COLUMNS = `e.game_id, e.number, e.kind, e.from_index, e.to_index, e.at, e.is_late, e.reason, e.log_id, e.log_index, e.logged_at,
  e.salt, g.label_key, g.math_hash, CASE WHEN e.kind < 3 THEN b.seed END AS seed, b.nonce,
  substring(b.tree FROM 1 FOR 32) AS tree, b.commitment, b.sealed`;
const entryOf = (row: EntryRow): LoggedEntry => ({
  opening: openingOf(row, row.labelKey),
  logId: row.logId,
  logIndex: safe(row.logIndex),
  loggedAt: row.loggedAt,
  salt: row.salt,
});

const OUTCOME_BYTES = 2;
const SEED_BYTES = 32;

interface TileKey {
  readonly level: number;
  readonly index: number;
}

export async function readTiles(
  sql: Sql,
  logId: number,
  wanted: readonly TileKey[],
): Promise<ReadonlyMap<string, Buffer>> {
  const rows = await sql.prepared<{ level: number; index: bigint; bytes: Buffer }[]>`
    SELECT level, index, bytes FROM log_tiles JOIN ${rowsOf(wanted, { level: 'int', index: 'bigint' })} USING (level, index)
    WHERE log_id = ${logId}`;
  return new Map(rows.map((row) => [`${row.level}/${row.index}`, row.bytes]));
}

/**
 * Returns the newest published checkpoint.
 * @param logId limits the search to one log; undefined means the newest log with a published checkpoint
 */
async function newestOf(sql: Sql, logId?: number): Promise<Published | undefined> {
  const [row] = await sql<
    { logId: number; origin: string; vkeys: string[]; policy: string | null; size: bigint; note: string }[]
  >`
    SELECT c.log_id, l.origin, l.vkeys, l.policy, c.size, c.note FROM log_checkpoints c JOIN logs l USING (log_id)
    WHERE published_at IS NOT NULL AND c.log_id = coalesce(${logId ?? null}::int, c.log_id)
    ORDER BY c.log_id DESC, c.size DESC LIMIT 1`;
  if (row === undefined) return undefined;
  return { ...row, logId: row.logId, size: safe(row.size) };
}

export class PublicLogReads {
  /** The read of the newest checkpoint that is in progress. The promise never rejects. */
  #reading: Promise<void> | undefined;
  /** The read of the newest checkpoint that will start after the read in progress. */
  #next: Promise<Published | undefined> | undefined;

  constructor(private readonly sql: Sql) {}

  /**
   * Returns the newest published checkpoint. The read starts after the call, and concurrent callers share one
   * read.
   */
  published(): Promise<Published | undefined> {
    this.#next ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#next = undefined;
      const reading = this.#read();
      this.#reading = reading.then(
        () => undefined,
        () => undefined,
      );
      return reading;
    });
    return this.#next;
  }

  #read(): Promise<Published | undefined> {
    return newestOf(this.sql);
  }

  /** Returns the newest published checkpoint of a log, also if the log has been replaced since. */
  async publishedOf(logId: number): Promise<Published | undefined> {
    const newest = await this.published();
    if (newest === undefined || newest.logId === logId) return newest;
    return newestOf(this.sql, logId);
  }

  /**
   * Returns the newest published checkpoint of the log whose origin has the given SHA-256, hexadecimal.
   * Undefined if there is no such log or no published checkpoint.
   */
  async publishedBy(originHash: string): Promise<Published | undefined> {
    const [row] = await this.sql<{ logId: number }[]>`
      SELECT log_id FROM logs WHERE encode(sha256(convert_to(origin, 'UTF8')), 'hex') = ${originHash} LIMIT 1`;
    return row && this.publishedOf(row.logId);
  }

  /**
   * Returns the stored bytes of a tile, which may extend beyond the published tree.
   * @param level tile level, or -1 for a bundle of records
   */
  async tile(logId: number, level: number, index: number): Promise<Buffer | undefined> {
    const [row] = await this.sql<{ bytes: Buffer }[]>`
      SELECT bytes FROM log_tiles WHERE log_id = ${logId} AND level = ${level} AND index = ${index}`;
    return row?.bytes;
  }

  tiles(logId: number, places: readonly TileKey[]): Promise<ReadonlyMap<string, Buffer>> {
    return readTiles(this.sql, logId, places);
  }

  /**
   * Returns the entry of the block that has the given index of a game, and the newest published checkpoint
   * that covers it.
   * @returns `before-log` if the block was fully committed, or its raffle closed, before the log began;
   * `waiting` if no published checkpoint covers the entry yet
   */
  async entryOfIndex(
    gameId: number,
    index: number,
  ): Promise<(LoggedEntry & { readonly covering: Covering }) | 'before-log' | 'waiting'> {
    const [row] = await this.sql.prepared<
      (EntryRow & { logNumber: bigint | null; isOpen: boolean; size: bigint | null; note: string })[]
    >`
      SELECT b.log_number, c.size, c.note, ${raw(ENTRY_COLUMNS)},
        b.to_index > coalesce(p.next_index, 0) AND NOT EXISTS (
          SELECT 1 FROM raffles r WHERE r.game_id = b.game_id AND r.closed_at IS NOT NULL) AS is_open
      FROM (SELECT * FROM blocks WHERE game_id = ${gameId} AND from_index <= ${index} ORDER BY from_index DESC LIMIT 1) b
        LEFT JOIN game_progress p USING (game_id)
        LEFT JOIN log_entries e ON e.game_id = b.game_id AND e.number = b.log_number
        LEFT JOIN log_games g ON g.game_id = b.game_id
        LEFT JOIN LATERAL (
          SELECT size, note FROM log_checkpoints c WHERE c.log_id = e.log_id AND published_at IS NOT NULL
          ORDER BY size DESC LIMIT 1) c ON c.size > e.log_index`;
    if (row === undefined) throw new Error(`No block has index ${index} of game ${gameId}`);
    if (row.logNumber === null) return row.isOpen ? 'waiting' : 'before-log';
    if (row.size === null) return 'waiting';
    return { ...entryOf(row), covering: { size: safe(row.size), note: row.note } };
  }

  async entries(gameId: number, from: number, limit: number): Promise<ListedEntry[]> {
    const rows = await this.sql<(EntryRow & { nextIndex: bigint; isPlayed: boolean; isClosed: boolean })[]>`
      SELECT ${raw(ENTRY_COLUMNS)}, coalesce(p.next_index, 0) AS next_index,
        e.kind = 3 AND EXISTS (SELECT 1 FROM rounds r WHERE r.game_id = e.game_id AND r.status = 'OPEN' AND r.shoe_index >= e.from_index
          AND r.shoe_index < e.to_index) AS is_played,
        e.kind = 2 AND EXISTS (SELECT 1 FROM raffles r WHERE r.game_id = e.game_id AND r.closed_at IS NOT NULL) AS is_closed
      FROM log_entries e JOIN log_games g USING (game_id)
        LEFT JOIN game_progress p USING (game_id)
        LEFT JOIN blocks b ON e.kind BETWEEN 1 AND 3 AND b.game_id = e.game_id AND b.from_index = e.from_index
      WHERE e.game_id = ${gameId} AND e.number >= ${from} AND e.log_index < (
        SELECT max(size) FROM log_checkpoints c WHERE c.log_id = e.log_id AND published_at IS NOT NULL)
      ORDER BY e.number LIMIT ${limit}`;
    return rows.map((row) => ({
      ...entryOf(row),
      // The remaining tickets of a voided raffle are never sold, so all indices of its pool count as used.
      isDone: row.isClosed || (row.nextIndex >= row.toIndex && !row.isPlayed),
      isBegun: row.nextIndex > row.fromIndex,
    }));
  }

  /** Returns the label key of a game, or undefined if no entry of the game is logged. */
  async labelKey(gameId: number): Promise<Buffer | undefined> {
    const [row] = await this.sql<{ labelKey: Buffer | null }[]>`
      SELECT label_key FROM log_games WHERE game_id = ${gameId}`;
    return row?.labelKey ?? undefined;
  }

  /**
   * Returns the data that proves a leaf of a block: its own group of leaves and the last group.
   * @param place position of the leaf in the block, from 0
   */
  async blockPart(opening: Opening, place: number): Promise<BlockPart> {
    const { gameId, fromIndex, toIndex, type } = opening;
    const count = toIndex - fromIndex;
    const [source, bytes] =
      type === 'shoes' ? (['seed', SEED_BYTES] as const) : (['outcomes', OUTCOME_BYTES] as const);
    const length = GROUP_LEAVES * bytes;
    const own = Math.floor(place / GROUP_LEAVES);
    const last = Math.floor(count / GROUP_LEAVES);
    const kept = keptFor(place, count);
    const column = source === 'seed' ? raw('seed') : raw('outcomes');
    const [row] = await this.sql.prepared<
      {
        seed: Buffer;
        nonce: Buffer;
        own: Buffer;
        last: Buffer;
        keptOwn: Buffer;
        keptLast: Buffer;
        keptHigh: Buffer;
        isRemoved: boolean;
        sealed: string | null;
      }[]
    >`
      SELECT octet_length(outcomes) = 0 AS is_removed, ${source === 'seed' ? raw("''::bytea") : raw('seed')} AS seed, nonce, sealed,
        substring(${column} FROM ${own * length + 1} FOR ${length}) AS own,
        substring(${column} FROM ${last * length + 1} FOR ${last === own ? 0 : length}) AS last,
        substring(tree FROM ${kept.own.from + 1} FOR ${kept.own.length}) AS kept_own,
        substring(tree FROM ${kept.last.from + 1} FOR ${kept.last.length}) AS kept_last,
        substring(tree FROM ${kept.high.from + 1} FOR ${kept.high.length}) AS kept_high
      FROM blocks WHERE game_id = ${gameId} AND from_index = ${fromIndex}`;
    const { sealed, isRemoved } = row!;
    const parts = new Map([
      [last * GROUP_LEAVES, openColumn(sealed, source, row!.last, last * length)],
      [own * GROUP_LEAVES, openColumn(sealed, source, row!.own, own * length)],
    ]);
    const seed = openColumn(sealed, 'seed', row!.seed);
    const nonce = openColumn(sealed, 'nonce', row!.nonce);
    const hashes = { own: row!.keptOwn, last: row!.keptLast, high: row!.keptHigh };
    return { count, seed, nonce, kept: hashes, isRemoved, parts };
  }

  /**
   * Returns the seed, nonce and outcomes of an exhausted block for publication. Removed outcomes are empty.
   */
  async revealed({ gameId, fromIndex }: Opening): Promise<{ seed: Buffer; nonce: Buffer; outcomes: Buffer }> {
    const [row] = await this.sql<{ seed: Buffer; nonce: Buffer; outcomes: Buffer; sealed: string | null }[]>`
      SELECT seed, nonce, outcomes, sealed FROM blocks WHERE game_id = ${gameId} AND from_index = ${fromIndex}`;
    const { seed, nonce, outcomes, sealed } = row!;
    return {
      seed: openColumn(sealed, 'seed', seed),
      nonce: openColumn(sealed, 'nonce', nonce),
      outcomes: openColumn(sealed, 'outcomes', outcomes),
    };
  }
}
