/**
 * Appends waiting entries to the public log. One statement reads the waiting entries and the open tiles. A
 * second statement writes the result, provided that the log's row is unchanged.
 */
import { randomBytes } from 'node:crypto';
import { BUNDLES, grow, type StoredTile } from '../../domain/publicLog/growth.js';
import { entryCommitment, labelOf, privateRecord, publicRecord } from '../../domain/publicLog/logEntries.js';
import { type Opening, openedText } from '../../domain/publicLog/openings.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, rowsOf, textArrayOf } from '../../postgres/statements.js';
import {
  HaltedError,
  LOG_COLUMNS,
  type LogRow,
  type LogState,
  openingOf,
  stateOf,
} from './publicLog.store.js';

/** Maximum number of entries in one append. */
export const APPENDED_AT_ONCE = 1024;
/** Number of tile levels above the lowest. They are enough for 2^53 records. */
const TILE_LEVELS = 6;
const KEY_BYTES = 32;

/**
 * Encodes the record that the public log has of an entry: a label and a commitment, which hide the entry.
 * @param opening the entry's data, with the label key of its game, from which the label is derived
 */
function recordOf(opening: Opening, salt: Buffer): Buffer {
  const commitment = entryCommitment(salt, openedText(opening));
  return privateRecord(labelOf(opening.labelKey, opening.number), commitment);
}

/** Encodes the public record of a new key that replaces an older key of the log. */
const keyRecord = (vkey: string, replaces: string): Buffer =>
  publicRecord({ type: 'key', at: new Date().toISOString(), vkey, replaces });

/** Maximum number of attempts of one append. An attempt fails if another worker appends first. */
const APPENDS_MAX = 50;

/**
 * Appends waiting entries, oldest first. Within one append, entries are ordered by game and number. One
 * statement reads the entries and another writes them; it does nothing if the log has changed in between.
 * @param vkeys new keys of the log, newest first, if they change. A record announces a newer key before it is
 * used.
 * @returns the new state of the log and the number of appended records
 * @throws HaltedError if the log is halted, Error if no log exists
 */
export async function appendWaiting(
  sql: Sql,
  vkeys?: readonly string[],
): Promise<LogState & { readonly appended: number }> {
  for (let times = 0; times < APPENDS_MAX; times++) {
    const appended = await tryAppend(sql, vkeys);
    if (appended !== undefined) return appended;
  }
  throw new Error(`The public log changed during each of ${APPENDS_MAX} attempts to append`);
}

/** @returns undefined if the log has changed meanwhile and nothing was appended */
async function tryAppend(
  sql: Sql,
  vkeys: readonly string[] | undefined,
): Promise<(LogState & { readonly appended: number }) | undefined> {
  const { state: before, notices, waiting, tiles } = await readWaiting(sql);
  if (before.halt !== null) throw new HaltedError(before.halt);
  const state = vkeys === undefined ? before : { ...before, vkeys };
  const replaced = before.vkeys[0]!;
  const known = replaced === state.vkeys[0] ? [] : [keyRecord(state.vkeys[0]!, replaced)];
  const { entries, made } = openWaiting(waiting);
  const appended = known.length + notices.length + entries.length;
  if (appended === 0 && vkeys === undefined) return { ...state, appended };
  const salts = entries.map(() => randomBytes(KEY_BYTES));
  const records = [
    ...known,
    ...notices.map(({ body }) => publicRecord(body)),
    ...entries.map((opening, at) => recordOf(opening, salts[at]!)),
  ];
  const grown = grow(state.size, tiles, records);
  const firstNotice = state.size + known.length;
  const isWritten = await writeAppended(sql, before, {
    size: grown.size,
    root: grown.root,
    vkeys: state.vkeys,
    tiles: grown.tiles,
    made,
    notices: notices.map(({ noticeId }, at) => ({ noticeId, logIndex: firstNotice + at })),
    entries: entries.map(({ gameId, number }, at) => ({ gameId, number, salt: salts[at]! })),
    firstEntry: firstNotice + notices.length,
  });
  return isWritten ? { ...state, size: grown.size, root: grown.root, appended } : undefined;
}

interface Notice {
  readonly noticeId: string;
  readonly body: { readonly type: string; readonly at: string };
}

/** Maximum number of records in one append that do not belong to games. */
const NOTICES_AT_ONCE = 64;

/** Waiting entry as JSON from Postgres. Bytes are hexadecimal, and the time is in ms. */
interface WaitingRow {
  readonly gameId: number;
  readonly number: number;
  readonly kind: number;
  readonly fromIndex: number;
  readonly toIndex: number;
  readonly at: number;
  readonly isLate: boolean;
  readonly reason: string | null;
  readonly labelKey: string | null;
  readonly mathHash: string | null;
  readonly seed: string | null;
  readonly nonce: string | null;
  readonly tree: string | null;
  readonly commitment: string | null;
  readonly sealed: string | null;
}

/** Reads the current log, its waiting entries (oldest first) and its open tiles in one statement. */
async function readWaiting(sql: Sql): Promise<{
  readonly state: LogState;
  readonly notices: readonly Notice[];
  readonly waiting: readonly WaitingRow[];
  readonly tiles: readonly StoredTile[];
}> {
  const [row] = await sql.prepared<
    (LogRow & {
      notices: readonly Notice[];
      waiting: readonly WaitingRow[];
      tiles: readonly { level: number; index: number; bytes: string }[];
    })[]
  >`
    WITH l AS (SELECT ${raw(LOG_COLUMNS)} FROM logs ORDER BY log_id DESC LIMIT 1)
    SELECT l.*,
      (SELECT coalesce(json_agg(json_build_object('noticeId', notice_id::text, 'body', body) ORDER BY notice_id), '[]') FROM (
        SELECT notice_id, body FROM log_notices WHERE log_index IS NULL ORDER BY notice_id LIMIT ${NOTICES_AT_ONCE}) n) AS notices,
      (SELECT coalesce(json_agg(w ORDER BY w."gameId", w.number), '[]') FROM (
        SELECT e.game_id AS "gameId", e.number, e.kind, e.from_index AS "fromIndex", e.to_index AS "toIndex", (extract(epoch FROM e.at) * 1000)::bigint AS at, e.is_late AS "isLate", e.reason,
          encode(g.label_key, 'hex') AS "labelKey", encode(g.math_hash, 'hex') AS "mathHash",
          CASE WHEN e.kind < 3 THEN encode(b.seed, 'hex') END AS seed, encode(b.nonce, 'hex') AS nonce,
          encode(substring(b.tree FROM 1 FOR 32), 'hex') AS tree, encode(b.commitment, 'hex') AS commitment, b.sealed
        FROM (SELECT * FROM log_entries WHERE log_index IS NULL ORDER BY queued LIMIT ${APPENDED_AT_ONCE}) e
          JOIN log_games g USING (game_id)
          LEFT JOIN blocks b ON e.kind <= 3 AND b.game_id = e.game_id AND b.from_index = e.from_index) w) AS waiting,
      (SELECT coalesce(json_agg(json_build_object('level', t.level, 'index', t.index, 'bytes', encode(t.bytes, 'hex'))), '[]')
        FROM generate_series(${BUNDLES}::int, ${TILE_LEVELS}::int) AS o(level)
          JOIN log_tiles t ON t.log_id = l.log_id AND t.level = o.level AND t.index = l.size >> (8 * (greatest(o.level, 0) + 1))) AS tiles
    FROM l`;
  if (row === undefined) throw new Error('There is no public log yet');
  return {
    state: stateOf(row),
    notices: row.notices,
    waiting: row.waiting,
    tiles: row.tiles.map(({ level, index, bytes }) => ({ level, index, bytes: Buffer.from(bytes, 'hex') })),
  };
}

/** Returns the openings of waiting entries, and new label keys for games that have none. */
function openWaiting(waiting: readonly WaitingRow[]): {
  readonly entries: readonly Opening[];
  readonly made: ReadonlyMap<number, Buffer>;
} {
  const keys = new Map<number, Buffer>();
  const made = new Map<number, Buffer>();
  const bytes = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text, 'hex'));
  const entries = waiting.map((row) => {
    const labelKey = keys.get(row.gameId) ?? bytes(row.labelKey) ?? randomBytes(KEY_BYTES);
    if (row.labelKey === null) made.set(row.gameId, labelKey);
    keys.set(row.gameId, labelKey);
    return openingOf(
      {
        ...row,
        number: BigInt(row.number),
        fromIndex: BigInt(row.fromIndex),
        toIndex: BigInt(row.toIndex),
        at: new Date(row.at),
        mathHash: bytes(row.mathHash),
        seed: bytes(row.seed),
        nonce: bytes(row.nonce),
        tree: bytes(row.tree),
        commitment: bytes(row.commitment),
      },
      labelKey,
    );
  });
  return { entries, made };
}

interface Appended {
  readonly size: number;
  readonly root: Buffer;
  readonly vkeys: readonly string[];
  readonly tiles: readonly StoredTile[];
  /** The label keys that were created for games without one. */
  readonly made: ReadonlyMap<number, Buffer>;
  readonly notices: readonly { readonly noticeId: string; readonly logIndex: number }[];
  readonly entries: readonly { readonly gameId: number; readonly number: number; readonly salt: Buffer }[];
  /** Position of the first appended entry in the log. */
  readonly firstEntry: number;
}

/**
 * Writes an append unless the log has changed.
 * @returns whether it was written
 */
async function writeAppended(sql: Sql, before: LogState, appended: Appended): Promise<boolean> {
  const { size, root, tiles, made, notices, entries, firstEntry } = appended;
  const keys = [...made].map(([gameId, key]) => ({ gameId, key }));
  const placed = entries.map((entry, at) => ({ ...entry, logIndex: firstEntry + at }));
  const written = await sql.prepared<{ logId: number }[]>`
    WITH l AS (
      UPDATE logs SET size = ${size}, root = ${root}, vkeys = ${textArrayOf(appended.vkeys)}::text[]
      WHERE log_id = ${before.logId} AND size = ${before.size} AND root = ${before.root}
        AND vkeys = ${textArrayOf(before.vkeys)}::text[] AND halt IS NULL AND NOT is_replaced
      RETURNING log_id),
    tiles AS (
      INSERT INTO log_tiles (log_id, level, index, bytes)
      SELECT l.log_id, t.* FROM l, ${rowsOf(tiles, { level: 'int', index: 'bigint', bytes: 'bytea' }, 't')}
      ON CONFLICT (log_id, level, index) DO UPDATE SET bytes = excluded.bytes),
    keys AS (
      UPDATE log_games g SET label_key = k.key FROM l, ${rowsOf(keys, { gameId: 'int', key: 'bytea' }, 'k')}
      WHERE g.game_id = k.game_id),
    notices AS (
      UPDATE log_notices n SET log_id = l.log_id, log_index = a.log_index
      FROM l, ${rowsOf(notices, { noticeId: 'bigint', logIndex: 'bigint' }, 'a')}
      WHERE n.notice_id = a.notice_id),
    entries AS (
      UPDATE log_entries e SET salt = a.salt, log_id = l.log_id, log_index = a.log_index, logged_at = now()
      FROM l, ${rowsOf(placed, { gameId: 'int', number: 'bigint', salt: 'bytea', logIndex: 'bigint' }, 'a')}
      WHERE e.game_id = a.game_id AND e.number = a.number)
    SELECT log_id FROM l`;
  return written.length > 0;
}
