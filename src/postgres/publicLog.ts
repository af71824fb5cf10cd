/**
 * The public log as it is written (docs/proofs.md): one at a time, whichever worker does it, each append in one transaction that
 * holds the log's row.
 */
import { randomBytes } from 'node:crypto';
import { entryCommitment, labelOf, privateRecord, publicRecord } from '../domain/transparency/entries.js';
import { grow, openTiles, type StoredTile } from '../domain/transparency/growth.js';
import { noteText, parseNote } from '../domain/transparency/notes.js';
import { entryTypeOf, type Opening, openedText } from '../domain/transparency/openings.js';
import { openNullable } from './blockSeals.js';
import { arrayOf, raw, type Sql, safe, type Transaction, textArrayOf } from './client.js';

/** Records of one append. */
export const APPENDED_AT_ONCE = 1024;
/** Records that a copy of the log grows by at once. */
const COPIED_AT_ONCE = 65_536;
const KEY_BYTES = 32;

export interface LogState {
  readonly logId: number;
  readonly origin: string;
  /** Newest first. */
  readonly vkeys: readonly string[];
  /** Its signer key, sealed; null where a setting or a file has it. */
  readonly signer: string | null;
  readonly size: number;
  readonly root: Buffer;
  /** Why nothing is appended to it any more, and the note that shows it (logHalts.ts); null: it is. */
  readonly halt: string | null;
  readonly haltNote: string | null;
  /** Nothing is dealt either. */
  readonly isHeld: boolean;
}

interface LogRow {
  log_id: number;
  origin: string;
  vkeys: string[];
  signer: string | null;
  size: bigint;
  root: Buffer;
  halt: string | null;
  halt_note: string | null;
  is_held: boolean;
}
const LOG_COLUMNS = 'log_id, origin, vkeys, signer, size, root, halt, halt_note, is_held';
const stateOf = (row: LogRow): LogState => ({
  logId: row.log_id,
  origin: row.origin,
  vkeys: row.vkeys,
  signer: row.signer,
  size: safe(row.size),
  root: row.root,
  halt: row.halt,
  haltNote: row.halt_note,
  isHeld: row.is_held,
});

/** The log is halted: nothing is appended to it or signed. */
class HaltedError extends Error {}

/** The log in force; undefined: none has begun. */
export async function logState(sql: Sql | Transaction): Promise<LogState | undefined> {
  const [row] = await sql<LogRow[]>`
    SELECT ${raw(LOG_COLUMNS)} FROM logs ORDER BY log_id DESC LIMIT 1`;
  return row && stateOf(row);
}

/** The log in force, held until the transaction ends. @throws Error where none has begun */
export async function lockedLog(tx: Transaction): Promise<LogState> {
  const [row] = await tx<LogRow[]>`
    SELECT ${raw(LOG_COLUMNS)} FROM logs ORDER BY log_id DESC LIMIT 1 FOR UPDATE`;
  if (row === undefined) throw new Error('No public log has begun');
  return stateOf(row);
}

/** Begins the log, unless another worker has. @param genesis its first record */
export async function beginLog(
  sql: Sql,
  log: Pick<LogState, 'origin' | 'vkeys' | 'signer'>,
  genesis: Buffer,
): Promise<void> {
  await sql.begin(async (tx) => {
    const { size, root, tiles } = grow(0, [], [genesis]);
    const begun = await tx<{ log_id: number }[]>`
      INSERT INTO logs (log_id, origin, vkeys, signer, size, root)
      VALUES (1, ${log.origin}, ${textArrayOf(log.vkeys)}::text[], ${log.signer}, ${size}, ${root})
      ON CONFLICT DO NOTHING RETURNING log_id`;
    if (begun.length > 0) await writeTiles(tx, 1, tiles);
  });
}

/** @param opening whose label key is made by now */
function recordOf(opening: Opening, salt: Buffer): Buffer {
  const commitment = entryCommitment(salt, openedText(opening));
  return privateRecord(labelOf(opening.labelKey, opening.number), commitment);
}

/** Of an entry, its game and its block. */
export interface OpeningRow {
  game_id: number;
  number: bigint;
  kind: number;
  from_index: bigint;
  to_index: bigint;
  at: Date;
  is_late: boolean;
  reason: string | null;
  math_hash: Buffer | null;
  seed: Buffer | null;
  nonce: Buffer | null;
  tree: Buffer | null;
  commitment: Buffer | null;
  /** With what seed and nonce are sealed. */
  sealed: string | null;
}

/** The opening that rows of an entry, its game and its block give. */
export const openingOf = (row: OpeningRow, labelKey: Buffer): Opening => ({
  gameId: row.game_id,
  number: safe(row.number),
  type: entryTypeOf(row.kind),
  fromIndex: safe(row.from_index),
  toIndex: safe(row.to_index),
  at: row.at,
  isLate: row.is_late,
  reason: row.reason,
  labelKey,
  mathHash: row.math_hash,
  seed: openNullable(row.sealed, 'seed', row.seed),
  nonce: openNullable(row.sealed, 'nonce', row.nonce),
  tree: row.tree,
  commitment: row.commitment,
});

/** A key that replaces another one, as everybody is told of it. */
const keyRecord = (vkey: string, replaces: string): Buffer =>
  publicRecord({ type: 'key', at: new Date().toISOString(), vkey, replaces });

/**
 * Appends entries that wait, the oldest first; within one append by game and number.
 * @param vkeys keys of the log from now on, newest first, where they change: a newer one is told of before
 * @returns the log as it is then, and how many records were appended
 * @throws HaltedError where the log is halted, Error where none has begun
 */
export async function appendWaiting(
  sql: Sql,
  vkeys?: readonly string[],
): Promise<LogState & { readonly appended: number }> {
  return sql.begin(async (tx) => {
    const before = await lockedLog(tx);
    if (before.halt !== null) throw new HaltedError(before.halt);
    const state = vkeys === undefined ? before : { ...before, vkeys };
    const replaced = before.vkeys[0]!;
    const known = replaced === state.vkeys[0] ? [] : [keyRecord(state.vkeys[0]!, replaced)];
    const notices = await waitingNotices(tx);
    const waiting = await waitingEntries(tx);
    const appended = known.length + notices.length + waiting.length;
    if (appended === 0 && vkeys === undefined) return { ...state, appended };
    const salts = waiting.map(() => randomBytes(KEY_BYTES));
    const records = [
      ...known,
      ...notices.map(({ body }) => publicRecord(body)),
      ...waiting.map((opening, at) => recordOf(opening, salts[at]!)),
    ];
    const grown = grow(state.size, await tilesAt(tx, state), records);
    await writeTiles(tx, state.logId, grown.tiles);
    const firstNotice = state.size + known.length;
    await noteLogged(tx, state.logId, firstNotice, notices);
    await noteAppended(tx, state.logId, firstNotice + notices.length, waiting, salts);
    await tx`
      UPDATE logs SET size = ${grown.size}, root = ${grown.root}, vkeys = ${textArrayOf(state.vkeys)}::text[]
      WHERE log_id = ${state.logId}`;
    return { ...state, size: grown.size, root: grown.root, appended };
  });
}

interface Notice {
  readonly noticeId: bigint;
  readonly body: { readonly type: string; readonly at: string };
}

/** Records of an append that are not of games. */
const NOTICES_AT_ONCE = 64;

async function waitingNotices(tx: Transaction): Promise<Notice[]> {
  const rows = await tx<{ notice_id: bigint; body: Notice['body'] }[]>`
    SELECT notice_id, body FROM log_notices WHERE log_index IS NULL ORDER BY notice_id LIMIT ${NOTICES_AT_ONCE}`;
  return rows.map((row) => ({ noticeId: row.notice_id, body: row.body }));
}

async function noteLogged(
  tx: Transaction,
  logId: number,
  firstIndex: number,
  notices: readonly Notice[],
): Promise<void> {
  if (notices.length === 0) return;
  await tx`
    UPDATE log_notices n SET log_id = ${logId}, log_index = ${firstIndex} + a.place - 1
    FROM unnest(${arrayOf(notices.map(({ noticeId }) => noticeId))}::bigint[]) WITH ORDINALITY AS a(notice_id, place)
    WHERE n.notice_id = a.notice_id`;
}

/**
 * Has the public log say, once a day, what the audit log's newest entry is: nobody can change an older one unseen after that.
 * @param day UTC, YYYY-MM-DD; a second time it does nothing
 */
export async function noteAuditHead(sql: Sql, day: string): Promise<void> {
  await sql`
      INSERT INTO log_notices (name, body)
      SELECT ${`audit ${day}`}, jsonb_build_object('type', 'audit', 'at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'entries', newest.audit_id, 'head', encode(newest.hash, 'hex'))
      FROM (SELECT audit_id, hash FROM audit_log ORDER BY audit_id DESC LIMIT 1) newest
      ON CONFLICT (name) DO NOTHING`;
}

async function waitingEntries(tx: Transaction): Promise<Opening[]> {
  const rows = await tx<(OpeningRow & { label_key: Buffer | null })[]>`
    SELECT e.game_id, e.number, e.kind, e.from_index, e.to_index, e.at, e.is_late, e.reason, g.label_key, g.math_hash,
      CASE WHEN e.kind < 3 THEN b.seed END AS seed, b.nonce, substring(b.tree FROM 1 FOR 32) AS tree, b.commitment, b.sealed
    FROM log_entries e JOIN log_games g USING (game_id)
      LEFT JOIN blocks b ON e.kind <= 3 AND b.game_id = e.game_id AND b.from_index = e.from_index
    WHERE e.log_index IS NULL ORDER BY e.queued LIMIT ${APPENDED_AT_ONCE}`;
  const keys = new Map<number, Buffer>();
  const made: number[] = [];
  for (const row of rows) {
    if (keys.has(row.game_id)) continue;
    if (row.label_key === null) made.push(row.game_id);
    keys.set(row.game_id, row.label_key ?? randomBytes(KEY_BYTES));
  }
  if (made.length > 0) {
    const texts = made.map((gameId) => keys.get(gameId)!.toString('hex'));
    await tx`
      UPDATE log_games g SET label_key = decode(k.key, 'hex')
      FROM unnest(${arrayOf(made)}::int[], ${arrayOf(texts)}::text[]) AS k(game_id, key) WHERE g.game_id = k.game_id`;
  }
  return rows
    .map((row) => openingOf(row, keys.get(row.game_id)!))
    .sort((a, b) => a.gameId - b.gameId || a.number - b.number);
}

async function noteAppended(
  tx: Transaction,
  logId: number,
  firstIndex: number,
  entries: readonly Opening[],
  salts: readonly Buffer[],
): Promise<void> {
  if (entries.length === 0) return;
  await tx`
    UPDATE log_entries e SET salt = decode(a.salt, 'hex'), log_id = ${logId}, log_index = ${firstIndex} + a.place - 1, logged_at = now()
    FROM unnest(${arrayOf(entries.map(({ gameId }) => gameId))}::int[], ${arrayOf(entries.map(({ number }) => number))}::bigint[],
      ${arrayOf(salts.map((salt) => salt.toString('hex')))}::text[]) WITH ORDINALITY AS a(game_id, number, salt, place)
    WHERE e.game_id = a.game_id AND e.number = a.number`;
}

export async function tilesAt(tx: Transaction, { logId, size }: LogState): Promise<StoredTile[]> {
  const open = openTiles(size);
  const rows = await tx<{ level: number; index: bigint; bytes: Buffer }[]>`
    SELECT level, index, bytes FROM log_tiles JOIN unnest(${arrayOf(open.map(({ level }) => level))}::int[],
      ${arrayOf(open.map(({ index }) => index))}::bigint[]) AS o(level, index) USING (level, index) WHERE log_id = ${logId}`;
  return rows.map((row) => ({ level: row.level, index: safe(row.index), bytes: row.bytes }));
}

export async function writeTiles(
  tx: Transaction,
  logId: number,
  tiles: readonly StoredTile[],
): Promise<void> {
  await tx`
    INSERT INTO log_tiles (log_id, level, index, bytes)
    SELECT ${logId}, level, index, decode(bytes, 'hex')
    FROM unnest(${arrayOf(tiles.map(({ level }) => level))}::int[], ${arrayOf(tiles.map(({ index }) => index))}::bigint[],
      ${arrayOf(tiles.map(({ bytes }) => bytes.toString('hex')))}::text[]) AS t(level, index, bytes)
    ON CONFLICT (log_id, level, index) DO UPDATE SET bytes = excluded.bytes`;
}

/** How far the log is. @throws Error where none has begun */
export async function logProgress(sql: Sql): Promise<{
  readonly state: LogState;
  /** Records in the newest published tree; 0: none is published. */
  readonly published: number;
  /** Since when the oldest entry waits to be appended; 0: none does. */
  readonly waitingSeconds: number;
  /** Since when a tree is signed that is larger than what is published; 0: none is. */
  readonly unpublishedSeconds: number;
}> {
  const [row] = await sql<(LogRow & { published: bigint; seconds: number; unpublished: number })[]>`
    SELECT p.*, (SELECT coalesce(greatest(extract(epoch FROM now() - min(signed_at)), 0), 0)::float8 FROM log_checkpoints c
      WHERE c.log_id = p.log_id AND c.size > p.published) AS unpublished FROM (
    SELECT l.*, coalesce((SELECT max(c.size) FROM log_checkpoints c WHERE c.log_id = l.log_id AND published_at IS NOT NULL), 0)
        AS published,
      (SELECT CASE WHEN count(*) = 0 THEN 0 ELSE greatest(extract(epoch FROM now() - min(at)), 0.001) END::float8 FROM (
        SELECT at FROM log_entries WHERE log_index IS NULL
        UNION ALL SELECT at FROM log_notices WHERE log_index IS NULL) w) AS seconds
    FROM logs l ORDER BY log_id DESC LIMIT 1) p`;
  if (row === undefined) throw new Error('No public log has begun');
  return {
    ...{ state: stateOf(row), published: safe(row.published) },
    ...{ waitingSeconds: row.seconds, unpublishedSeconds: row.unpublished },
  };
}

/** The newest published checkpoint with the log's own signatures, for a settlement report: it is kept for ever. */
export async function namedCheckpoint(tx: Transaction): Promise<string | null> {
  const [row] = await tx<{ note: string; origin: string }[]>`
    UPDATE log_checkpoints c SET is_named = true FROM logs l
    WHERE l.log_id = c.log_id AND (c.log_id, c.size) = (
      SELECT log_id, size FROM log_checkpoints WHERE published_at IS NOT NULL ORDER BY log_id DESC, size DESC LIMIT 1)
    RETURNING c.note, l.origin`;
  if (row === undefined) return null;
  const { text, lines } = parseNote(row.note);
  return noteText(
    text,
    lines.filter(({ name }) => name === row.origin),
  );
}

/**
 * Removes checkpoints that nobody needs: kept are all of the last hour, then one a minute for 30 days, one an hour for ever (one with
 * cosignatures before the others), each that a report names, and what is newest.
 */
export async function pruneCheckpoints(sql: Sql): Promise<void> {
  await sql`
    DELETE FROM log_checkpoints c USING (
      SELECT log_id, size, row_number() OVER (PARTITION BY log_id, date_trunc(
        CASE WHEN signed_at > now() - interval '30 days' THEN 'minute' ELSE 'hour' END, signed_at)
        ORDER BY cosignatures > 0 DESC, size DESC) AS place
      FROM log_checkpoints WHERE signed_at < now() - interval '1 hour') old
    WHERE c.log_id = old.log_id AND c.size = old.size AND old.place > 1 AND NOT c.is_named
      AND c.size < (SELECT max(size) FROM log_checkpoints n WHERE n.log_id = c.log_id AND published_at IS NOT NULL)`;
}

/** Stores a signed note, before it leaves the process. A second time publishes it at most. @throws HaltedError where the log is halted */
export async function storeCheckpoint(
  sql: Sql,
  logId: number,
  {
    size,
    note,
    isPublished,
  }: { readonly size: number; readonly note: string; readonly isPublished: boolean },
): Promise<void> {
  await sql.begin(async (tx) => {
    const [log] = await tx<
      { halt: string | null }[]
    >`SELECT halt FROM logs WHERE log_id = ${logId} FOR SHARE`;
    if (log!.halt !== null) throw new HaltedError(log!.halt);
    await tx`
      INSERT INTO log_checkpoints (log_id, size, note, published_at)
      VALUES (${logId}, ${size}, ${note}, CASE WHEN ${isPublished}::boolean THEN now() END)
      ON CONFLICT (log_id, size) DO UPDATE SET published_at = coalesce(log_checkpoints.published_at, excluded.published_at)
      WHERE log_checkpoints.published_at IS NULL AND excluded.published_at IS NOT NULL`;
  });
}

/**
 * A published checkpoint that a copy of the log grows to next: not many records further, where there is one.
 * @param have records of the copy
 * @returns undefined: none is larger
 */
export async function checkpointAfter(
  sql: Sql,
  logId: number,
  have: number,
): Promise<{ readonly size: number; readonly note: string } | undefined> {
  const [row] = await sql<{ size: bigint; note: string }[]>`
    SELECT size, note FROM log_checkpoints WHERE log_id = ${logId} AND published_at IS NOT NULL AND size > ${have}
    ORDER BY (size > ${have + COPIED_AT_ONCE}), abs(size - ${have + COPIED_AT_ONCE}) LIMIT 1`;
  return row && { size: safe(row.size), note: row.note };
}

/** The origins of all logs, the one in force last. */
export async function logOrigins(sql: Sql): Promise<string[]> {
  const rows = await sql<{ origin: string }[]>`SELECT origin FROM logs ORDER BY log_id`;
  return rows.map(({ origin }) => origin);
}
