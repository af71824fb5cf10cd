/**
 * Writes to the public log (docs/proofs.md): its state, tiles and checkpoints. Appends are in
 * logAppend.store.ts.
 */

import { grow, openTiles, type StoredTile } from '../../domain/publicLog/growth.js';
import { noteText, parseNote } from '../../domain/publicLog/notes.js';
import { entryTypeOf, type Opening } from '../../domain/publicLog/openings.js';
import { type SecretBox, UnknownKeyError } from '../../domain/secretBox.js';
import { openNullable } from '../../engine/blocks/blockSeals.store.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw, rowsOf, safe, textArrayOf } from '../../postgres/statements.js';

/** Maximum number of records by which a copy of the log grows in one step. */
const COPIED_AT_ONCE = 65_536;

export interface LogState {
  readonly logId: number;
  readonly origin: string;
  /** Keys of the log, newest first. */
  readonly vkeys: readonly string[];
  /** Signing key of the log, sealed; null if an environment variable or a file provides it. */
  readonly signer: string | null;
  readonly size: number;
  readonly root: Buffer;
  /**
   * Reason why the log is halted, and the note that proves it (logHalts.store.ts); null if it is not halted.
   */
  readonly halt: string | null;
  readonly haltNote: string | null;
  /** True if not only the log is halted, but dealing is stopped too. */
  readonly isHeld: boolean;
}

export interface LogRow {
  logId: number;
  origin: string;
  vkeys: string[];
  signer: string | null;
  size: bigint;
  root: Buffer;
  halt: string | null;
  haltNote: string | null;
  isHeld: boolean;
}

export const LOG_COLUMNS = 'log_id, origin, vkeys, signer, size, root, halt, halt_note, is_held';
export const stateOf = (row: LogRow): LogState => ({
  logId: row.logId,
  origin: row.origin,
  vkeys: row.vkeys,
  signer: row.signer,
  size: safe(row.size),
  root: row.root,
  halt: row.halt,
  haltNote: row.haltNote,
  isHeld: row.isHeld,
});

/** Thrown if the log is halted: nothing may be appended or signed. */
export class HaltedError extends Error {}

export async function logState(sql: Sql | Transaction): Promise<LogState | undefined> {
  const [row] = await sql<LogRow[]>`
    SELECT ${raw(LOG_COLUMNS)} FROM logs ORDER BY log_id DESC LIMIT 1`;
  return row && stateOf(row);
}

/** Returns the current log and locks its row until the transaction ends. */
export async function lockedLog(tx: Transaction): Promise<LogState> {
  const [row] = await tx<LogRow[]>`
    SELECT ${raw(LOG_COLUMNS)} FROM logs ORDER BY log_id DESC LIMIT 1 FOR UPDATE`;
  if (row === undefined) throw new Error('There is no public log yet');
  return stateOf(row);
}

/**
 * Reseals the signing key of the current log with the newest sealing key. Does so only if Postgres has the
 * signing key and an available sealing key opens it.
 */
export async function sealSigner(sql: Sql, box: SecretBox): Promise<void> {
  if (box.prefix === undefined) return;
  await sql.begin(async (tx) => {
    const [row] = await tx<{ logId: number; signer: string }[]>`
      SELECT log_id, signer FROM logs
      WHERE log_id = (SELECT max(log_id) FROM logs) AND signer NOT LIKE ${`${box.prefix}%`} FOR UPDATE`;
    if (row === undefined) return;
    try {
      await tx`UPDATE logs SET signer = ${box.seal(box.open(row.signer))} WHERE log_id = ${row.logId}`;
    } catch (error) {
      // A missing sealing key is no error here, because LOG_KEY may provide the signing key.
      if (!(error instanceof UnknownKeyError)) throw error;
    }
  });
}

/**
 * Begins the log unless another worker has begun it.
 * @param genesis first record of the log
 */
export async function beginLog(
  sql: Sql,
  log: Pick<LogState, 'origin' | 'vkeys' | 'signer'>,
  genesis: Buffer,
): Promise<void> {
  await sql.begin(async (tx) => {
    const { size, root, tiles } = grow(0, [], [genesis]);
    const begun = await tx<{ logId: number }[]>`
      INSERT INTO logs (log_id, origin, vkeys, signer, size, root)
      VALUES (1, ${log.origin}, ${textArrayOf(log.vkeys)}::text[], ${log.signer}, ${size}, ${root})
      ON CONFLICT DO NOTHING RETURNING log_id`;
    if (begun.length > 0) await writeTiles(tx, 1, tiles);
  });
}

/** Row of a log entry joined with its game and block. */
export interface OpeningRow {
  gameId: number;
  number: bigint;
  kind: number;
  fromIndex: bigint;
  toIndex: bigint;
  at: Date;
  isLate: boolean;
  reason: string | null;
  mathHash: Buffer | null;
  seed: Buffer | null;
  nonce: Buffer | null;
  tree: Buffer | null;
  commitment: Buffer | null;
  /** Reference to the key that seals the seed and the nonce; null if they are not sealed. */
  sealed: string | null;
}

export const openingOf = (row: OpeningRow, labelKey: Buffer): Opening => ({
  gameId: row.gameId,
  number: safe(row.number),
  type: entryTypeOf(row.kind),
  fromIndex: safe(row.fromIndex),
  toIndex: safe(row.toIndex),
  at: row.at,
  isLate: row.isLate,
  reason: row.reason,
  labelKey,
  mathHash: row.mathHash,
  seed: openNullable(row.sealed, 'seed', row.seed),
  nonce: openNullable(row.sealed, 'nonce', row.nonce),
  tree: row.tree,
  commitment: row.commitment,
});

/**
 * Queues a public record of the newest audit log entry. After it is published, nobody can change earlier
 * entries unnoticed.
 * @param day UTC day, YYYY-MM-DD; a second call for the same day does nothing
 */
export async function noteAuditHead(sql: Sql, day: string): Promise<void> {
  await sql`
      INSERT INTO log_notices (name, body)
      SELECT ${`audit ${day}`}, jsonb_build_object('type', 'audit', 'at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'entries', newest.audit_id, 'head', encode(newest.hash, 'hex'))
      FROM (SELECT audit_id, hash FROM audit_log ORDER BY audit_id DESC LIMIT 1) newest
      ON CONFLICT (name) DO NOTHING`;
}

export async function tilesAt(tx: Transaction, { logId, size }: LogState): Promise<StoredTile[]> {
  const open = openTiles(size);
  const rows = await tx<{ level: number; index: bigint; bytes: Buffer }[]>`
    SELECT level, index, bytes FROM log_tiles JOIN ${rowsOf(open, { level: 'int', index: 'bigint' })} USING (level, index)
    WHERE log_id = ${logId}`;
  return rows.map((row) => ({ level: row.level, index: safe(row.index), bytes: row.bytes }));
}

export async function writeTiles(
  tx: Transaction,
  logId: number,
  tiles: readonly StoredTile[],
): Promise<void> {
  await tx`
    INSERT INTO log_tiles (log_id, level, index, bytes)
    SELECT ${logId}, level, index, bytes FROM ${rowsOf(tiles, { level: 'int', index: 'bigint', bytes: 'bytea' })}
    ON CONFLICT (log_id, level, index) DO UPDATE SET bytes = excluded.bytes`;
}

/** Returns the progress of the current log. */
export async function logProgress(sql: Sql): Promise<{
  readonly state: LogState;
  /** Number of records in the newest published tree; 0 if none is published. */
  readonly published: number;
  /** Age of the oldest entry waiting to be appended, in seconds; 0 if none. */
  readonly waitingSeconds: number;
  /** Age of the oldest signed tree that is larger than the published one, in seconds; 0 if none. */
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
  if (row === undefined) throw new Error('There is no public log yet');
  return {
    state: stateOf(row),
    published: safe(row.published),
    waitingSeconds: row.seconds,
    unpublishedSeconds: row.unpublished,
  };
}

/**
 * Returns the newest published checkpoint with the log's own signatures, for a settlement report. The
 * checkpoint is then kept permanently.
 */
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
 * Removes checkpoints that are no longer needed. Kept are: all of the last hour, one per minute for 30 days,
 * one per hour for ever (preferably with cosignatures), those named by a settlement report, and the newest.
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

/**
 * Stores a signed note before it leaves the process. A second call can only publish it.
 * @throws HaltedError if the log is halted
 */
export async function storeCheckpoint(
  sql: Sql,
  logId: number,
  {
    size,
    note,
    isPublished,
  }: { readonly size: number; readonly note: string; readonly isPublished: boolean },
): Promise<void> {
  const [log] = await sql.prepared<{ halt: string | null }[]>`
    WITH l AS (SELECT log_id, halt FROM logs WHERE log_id = ${logId} FOR SHARE),
    stored AS (
      INSERT INTO log_checkpoints (log_id, size, note, published_at)
      SELECT log_id, ${size}::bigint, ${note}, CASE WHEN ${isPublished}::boolean THEN now() END FROM l WHERE halt IS NULL
      ON CONFLICT (log_id, size) DO UPDATE SET published_at = coalesce(log_checkpoints.published_at, excluded.published_at)
      WHERE log_checkpoints.published_at IS NULL AND excluded.published_at IS NOT NULL)
    SELECT halt FROM l`;
  if (log!.halt !== null) throw new HaltedError(log!.halt);
}

/**
 * Returns the published checkpoint to which a copy of the log should advance. A checkpoint that is about one
 * maximum step ahead of the copy is preferred.
 * @param have number of records in the copy
 * @returns undefined if no published checkpoint is larger
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

/** Returns the origins of all logs, the current one last. */
export async function logOrigins(sql: Sql): Promise<string[]> {
  const rows = await sql<{ origin: string }[]>`SELECT origin FROM logs ORDER BY log_id`;
  return rows.map(({ origin }) => origin);
}
