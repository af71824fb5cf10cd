/**
 * Checks notes that carry this log's signature but a tree that is not part of the log. Such a note means that
 * Postgres was restored to an older state, or that someone else signs with the log's key.
 */
import { createHash } from 'node:crypto';
import { parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import { NoteError, parseNote, parseVkey, signersOf, type Verifier } from '../../domain/publicLog/notes.js';
import { hashInTile, tilesRead, tileWith } from '../../domain/publicLog/tiles.js';
import { rootOf } from '../../domain/publicLog/tree.js';
import type { Sql } from '../../postgres/connection.js';
import { type Evidence, haltLog } from './logHalts.store.js';
import { type LogState, logState } from './publicLog.store.js';
import { readTiles } from './publicLogReads.store.js';
import { ask } from './submission.js';

/** Maximum number of times that a note is checked again because the log has grown meanwhile. */
const JUDGED_MAX = 20;

/** Returns the SHA-256 of a log's origin in hexadecimal, which names the log in folders, paths and keys. */
export const hashOfOrigin = (origin: string): string => createHash('sha256').update(origin).digest('hex');

/** Returns the root over the first `size` records of a log. The log must have at least `size` records. */
async function rootAt(sql: Sql, logId: number, size: number): Promise<Buffer> {
  const tiles = await readTiles(
    sql,
    logId,
    tilesRead(size, (read) => rootOf(size, read)),
  );
  return rootOf(size, (level, index) => {
    const place = tileWith(level, index, size);
    return hashInTile(tiles.get(`${place.level}/${place.index}`)!, level, index);
  });
}

/**
 * Checks a note. It is evidence if a key of this log signed it and its tree is not part of the log.
 * @param state state of the log, read after the note
 * @param keys keys of this process, because a restored Postgres may lack newer keys
 * @returns a description of the evidence; undefined if the note is no evidence
 */
async function judgeNote(
  sql: Sql,
  state: LogState,
  keys: readonly Verifier[],
  note: string,
): Promise<string | undefined> {
  const { origin, vkeys, size: ours, logId } = state;
  try {
    const parsed = parseNote(note);
    const { origin: name, size, root } = parseCheckpoint(parsed.text);
    if (name !== origin || signersOf(parsed, [...vkeys.map(parseVkey), ...keys]).length === 0)
      return undefined;
    if (size > ours)
      return `a checkpoint with our signature has ${size} records, but the log has only ${ours}`;
    if (size === 0 || root.equals(await rootAt(sql, logId, size))) return undefined;
    return `a checkpoint of ${size} records with our signature has another root than the log`;
  } catch (error) {
    if (error instanceof NoteError) return undefined;
    throw error;
  }
}

/**
 * Checks notes and halts the log if one of them is evidence.
 * @param notes notes read before the call; `from` names the source of a note for people
 * @returns the first evidence found; undefined if there is none
 */
export async function haltOnEvidence(
  sql: Sql,
  notes: readonly { readonly from: string; readonly note: string }[],
  { keys, ...halt }: { readonly keys: readonly Verifier[]; readonly isHeld: boolean; readonly actor: string },
): Promise<Evidence | undefined> {
  for (const { from, note } of notes) {
    for (let times = 0; ; times++) {
      const state = (await logState(sql))!;
      const found = await judgeNote(sql, state, keys, note);
      if (found === undefined) break;
      const evidence = { problem: `${found} (${from})`, note };
      if (await haltLog(sql, state, evidence, halt)) return evidence;
      if (times === JUDGED_MAX) throw new Error(`The log grew during each of ${times} checks of a note`);
    }
  }
  return undefined;
}

/**
 * Returns the checkpoint of a log that a witness serves, or undefined.
 * @param prefix URL prefix of the witness
 */
export async function witnessNote(origin: string, prefix: string): Promise<string | undefined> {
  const shown = await ask(`${prefix}/${hashOfOrigin(origin)}/checkpoint`).catch(() => undefined);
  return shown?.status === 200 ? shown.text : undefined;
}
