/** The public log as it is read: by anybody, and with the openings by whose games they are. */
import { openTiles } from '../domain/transparency/growth.js';
import type { Opening } from '../domain/transparency/openings.js';
import { TILE_WIDTH } from '../domain/transparency/tiles.js';
import { openColumn } from './blockSeals.js';
import { arrayOf, type Sql, safe } from './client.js';
import { type OpeningRow, openingOf } from './publicLog.js';

export interface Published {
  readonly logId: number;
  readonly origin: string;
  readonly vkeys: readonly string[];
  /** What the policy of the workers says of witnesses, groups and the quorum; null: there is none. */
  readonly policy: string | null;
  readonly size: number;
  /** The newest published checkpoint, as it is. */
  readonly note: string;
}

/** An entry of a game that is published. */
export interface LoggedEntry {
  readonly opening: Opening;
  readonly logId: number;
  readonly logIndex: number;
  readonly loggedAt: Date;
  readonly salt: Buffer;
  /** Of a block: every index is booked or voided, and no round of it is open. */
  readonly isDone: boolean;
  /** Of a block: some index of it was dealt or voided. */
  readonly isBegun: boolean;
}

/** A part of a block, with what its leaves are made of. */
export interface BlockPart {
  readonly count: number;
  readonly seed: Buffer;
  readonly nonce: Buffer;
  readonly tree: Buffer;
  /** The outcomes are removed: they are to be drawn again of the seed, and the parts are empty. */
  readonly isRemoved: boolean;
  /** Packed outcomes of the leaves from a place on, by that place; of shoes their seeds. */
  readonly parts: ReadonlyMap<number, Buffer>;
}

type EntryRow = OpeningRow & {
  label_key: Buffer;
  log_id: number;
  log_index: bigint;
  logged_at: Date;
  salt: Buffer;
  next_index: bigint;
  is_played: boolean;
};

const OUTCOME_BYTES = 2;
const SEED_BYTES = 32;

/** Tiles of a log, as far as they are stored, by level and index as `level/index`. */
export async function readTiles(
  sql: Sql,
  logId: number,
  wanted: readonly { readonly level: number; readonly index: number }[],
): Promise<ReadonlyMap<string, Buffer>> {
  const rows = await sql<{ level: number; index: bigint; bytes: Buffer }[]>`
    SELECT DISTINCT level, index, bytes FROM log_tiles JOIN unnest(${arrayOf(wanted.map(({ level }) => level))}::int[],
      ${arrayOf(wanted.map(({ index }) => index))}::bigint[]) AS w(level, index) USING (level, index) WHERE log_id = ${logId}`;
  return new Map(rows.map((row) => [`${row.level}/${row.index}`, row.bytes]));
}

/** The newest published checkpoint. @param logId of this log; absent: of the newest that has any */
async function newestOf(sql: Sql, logId?: number): Promise<Published | undefined> {
  const [row] = await sql<
    { log_id: number; origin: string; vkeys: string[]; policy: string | null; size: bigint; note: string }[]
  >`
    SELECT c.log_id, l.origin, l.vkeys, l.policy, c.size, c.note FROM log_checkpoints c JOIN logs l USING (log_id)
    WHERE published_at IS NOT NULL AND c.log_id = coalesce(${logId ?? null}::int, c.log_id)
    ORDER BY c.log_id DESC, c.size DESC LIMIT 1`;
  if (row === undefined) return undefined;
  return { ...row, logId: row.log_id, size: safe(row.size) };
}

export class PublicLogReads {
  readonly #sql: Sql;
  /** The read that is under way; it never rejects. */
  #reading: Promise<void> | undefined;
  /** The one that begins once that has ended. */
  #next: Promise<Published | undefined> | undefined;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The newest published checkpoint, by a read that begins after the call: one for all who wait for it. */
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
    return newestOf(this.#sql);
  }

  /** The newest published checkpoint of a log, which another one may have replaced since. */
  async publishedOf(logId: number): Promise<Published | undefined> {
    const newest = await this.published();
    if (newest === undefined || newest.logId === logId) return newest;
    return newestOf(this.#sql, logId);
  }

  /** The same, by the SHA-256 of the log's origin, hexadecimal; undefined: there is no such log, or nothing of it is published. */
  async publishedBy(originHash: string): Promise<Published | undefined> {
    const [row] = await this.#sql<{ log_id: number }[]>`
      SELECT log_id FROM logs WHERE encode(sha256(convert_to(origin, 'UTF8')), 'hex') = ${originHash} LIMIT 1`;
    return row && this.publishedOf(row.log_id);
  }

  /** The bytes of a tile as far as it is stored, which may be further than what is published. @param level -1: a bundle */
  async tile(logId: number, level: number, index: number): Promise<Buffer | undefined> {
    const [row] = await this.#sql<{ bytes: Buffer }[]>`
      SELECT bytes FROM log_tiles WHERE log_id = ${logId} AND level = ${level} AND index = ${index}`;
    return row?.bytes;
  }

  /** The tiles that prove that a tree of a size has a record, by level and index as `level/index`. */
  async tilesFor(logId: number, logIndex: number, size: number): Promise<ReadonlyMap<string, Buffer>> {
    const wanted = openTiles(size).filter(({ level }) => level >= 0);
    for (let level = 0; TILE_WIDTH ** level < size; level++) {
      wanted.push({ level, index: Math.floor(logIndex / TILE_WIDTH ** (level + 1)) });
    }
    return readTiles(this.#sql, logId, wanted);
  }

  /**
   * The entry of the block that has an index of a game.
   * @returns `before-log`: it was wholly booked before the log began; `waiting`: it is not in a published checkpoint yet
   */
  async entryOfIndex(gameId: number, index: number): Promise<LoggedEntry | 'before-log' | 'waiting'> {
    const [block] = await this.#sql<{ log_number: bigint | null; is_open: boolean }[]>`
      SELECT log_number, to_index > coalesce((SELECT next_index FROM game_progress p WHERE p.game_id = b.game_id), 0) AS is_open
      FROM blocks b WHERE game_id = ${gameId} AND from_index <= ${index} ORDER BY from_index DESC LIMIT 1`;
    if (block === undefined) throw new Error(`No block has index ${index} of game ${gameId}`);
    if (block.log_number === null) return block.is_open ? 'waiting' : 'before-log';
    const number = safe(block.log_number);
    const [entry] = await this.entries(gameId, number, 1);
    return entry?.opening.number === number ? entry : 'waiting';
  }

  /** Published entries of a game, from a number on. */
  async entries(gameId: number, from: number, limit: number): Promise<LoggedEntry[]> {
    const rows = await this.#sql<EntryRow[]>`
      SELECT e.game_id, e.number, e.kind, e.from_index, e.to_index, e.at, e.is_late, e.reason, e.log_id, e.log_index, e.logged_at, e.salt,
        g.label_key, g.math_hash, CASE WHEN e.kind < 3 THEN b.seed END AS seed, b.nonce,
        substring(b.tree FROM 1 FOR 32) AS tree, b.commitment, b.sealed, coalesce(p.next_index, 0) AS next_index,
        e.kind = 3 AND EXISTS (SELECT 1 FROM rounds r WHERE r.game_id = e.game_id AND r.status = 'OPEN' AND r.shoe_index >= e.from_index
          AND r.shoe_index < e.to_index) AS is_played
      FROM log_entries e JOIN log_games g USING (game_id)
        LEFT JOIN game_progress p USING (game_id)
        LEFT JOIN blocks b ON e.kind BETWEEN 1 AND 3 AND b.game_id = e.game_id AND b.from_index = e.from_index
      WHERE e.game_id = ${gameId} AND e.number >= ${from} AND e.log_index < (
        SELECT max(size) FROM log_checkpoints c WHERE c.log_id = e.log_id AND published_at IS NOT NULL)
      ORDER BY e.number LIMIT ${limit}`;
    return rows.map((row) => ({
      opening: openingOf(row, row.label_key),
      logId: row.log_id,
      logIndex: safe(row.log_index),
      loggedAt: row.logged_at,
      salt: row.salt,
      isDone: row.next_index >= row.to_index && !row.is_played,
      isBegun: row.next_index > row.from_index,
    }));
  }

  /** The label key of a game; undefined: nothing of it is logged. */
  async labelKey(gameId: number): Promise<Buffer | undefined> {
    const [row] = await this.#sql<{ label_key: Buffer | null }[]>`
      SELECT label_key FROM log_games WHERE game_id = ${gameId}`;
    return row?.label_key ?? undefined;
  }

  /** What proves a leaf of a block: its own group of leaves and the last one. @param place from 0 */
  async blockPart(opening: Opening, place: number, groupLeaves: number): Promise<BlockPart> {
    const { gameId, fromIndex, toIndex, type } = opening;
    const count = toIndex - fromIndex;
    const own = Math.floor(place / groupLeaves) * groupLeaves;
    const last = Math.floor(count / groupLeaves) * groupLeaves;
    const [source, bytes] =
      type === 'shoes' ? (['seed', SEED_BYTES] as const) : (['outcomes', OUTCOME_BYTES] as const);
    const [row] = await this.#sql<
      {
        seed: Buffer;
        nonce: Buffer;
        tree: Buffer;
        own: Buffer;
        last: Buffer;
        is_removed: boolean;
        sealed: string | null;
      }[]
    >`
      SELECT octet_length(outcomes) = 0 AS is_removed, CASE WHEN ${source} = 'outcomes' THEN seed ELSE ''::bytea END AS seed, nonce, tree, sealed,
        substring(CASE WHEN ${source} = 'seed' THEN seed ELSE outcomes END FROM ${own * bytes + 1} FOR ${groupLeaves * bytes}) AS own,
        substring(CASE WHEN ${source} = 'seed' THEN seed ELSE outcomes END FROM ${last * bytes + 1} FOR ${groupLeaves * bytes}) AS last
      FROM blocks WHERE game_id = ${gameId} AND from_index = ${fromIndex}`;
    const { sealed, tree, is_removed: isRemoved } = row!;
    const parts = new Map([
      [last, openColumn(sealed, source, row!.last, last * bytes)],
      [own, openColumn(sealed, source, row!.own, own * bytes)],
    ]);
    const seed = openColumn(sealed, 'seed', row!.seed);
    const nonce = openColumn(sealed, 'nonce', row!.nonce);
    return { count, seed, nonce, tree, isRemoved, parts };
  }

  /** What is revealed of a block that is exhausted; no outcomes where they are removed. */
  async revealed({ gameId, fromIndex }: Opening): Promise<{ seed: Buffer; nonce: Buffer; outcomes: Buffer }> {
    const [row] = await this.#sql<{ seed: Buffer; nonce: Buffer; outcomes: Buffer; sealed: string | null }[]>`
      SELECT seed, nonce, outcomes, sealed FROM blocks WHERE game_id = ${gameId} AND from_index = ${fromIndex}`;
    const { seed, nonce, outcomes, sealed } = row!;
    return {
      seed: openColumn(sealed, 'seed', seed),
      nonce: openColumn(sealed, 'nonce', nonce),
      outcomes: openColumn(sealed, 'outcomes', outcomes),
    };
  }
}
