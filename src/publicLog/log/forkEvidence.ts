/** Notes with our own signature of a tree that is not ours: Postgres was restored to an older state, or somebody signs with our key. */
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

/** How often a note is judged anew because the log has grown meanwhile. */
const JUDGED_MAX = 20;

/** How folders, paths and keys name a log. */
export const hashOfOrigin = (origin: string): string => createHash('sha256').update(origin).digest('hex');

/** The root of the first so many records of a log that has at least as many. */
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
 * Judges a note: it is evidence where a key of ours signed it, and its tree is none of ours.
 * @param state read after the note was
 * @param keys of this process: an older Postgres may not know of them
 * @returns what it shows; undefined: it is none
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
    if (size > ours) return `a checkpoint of ${size} records has our signature, and the log has ${ours}`;
    if (size === 0 || root.equals(await rootAt(sql, logId, size))) return undefined;
    return `a checkpoint of ${size} records has our signature, and another root than the log`;
  } catch (error) {
    if (error instanceof NoteError) return undefined;
    throw error;
  }
}

/**
 * Looks whether notes are evidence, and halts the log where one is.
 * @param notes read before the call
 * @param from where each was read, for people
 * @returns what the first shows that is; undefined: none is
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
      if (times === JUDGED_MAX) throw new Error(`The log has grown during each of ${times} looks at a note`);
    }
  }
  return undefined;
}

/** The checkpoint that a witness has of a log; undefined: it does not show one. @param prefix of the witness */
export async function witnessNote(origin: string, prefix: string): Promise<string | undefined> {
  const shown = await ask(`${prefix}/${hashOfOrigin(origin)}/checkpoint`).catch(() => undefined);
  return shown?.status === 200 ? shown.text : undefined;
}
