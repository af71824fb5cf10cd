/** Notes with our own signature of a tree that is not ours: Postgres was restored to an older state, or somebody signs with our key. */
import { createHash } from 'node:crypto';
import { parseCheckpoint } from '../domain/transparency/checkpoints.js';
import { NoteError, parseNote, parseVkey, signersOf } from '../domain/transparency/notes.js';
import { hashInTile, tilesRead, tileWith } from '../domain/transparency/tiles.js';
import { rootOf } from '../domain/transparency/tree.js';
import type { Sql } from '../postgres/client.js';
import { type LogState, logState } from '../postgres/publicLog.js';
import { readTiles } from '../postgres/publicLogReads.js';
import { ask } from './submission.js';

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
 * @returns what it shows; undefined: it is none
 */
async function judgeEvidence(sql: Sql, state: LogState, note: string): Promise<string | undefined> {
  const { origin, vkeys, size: ours, logId } = state;
  try {
    const parsed = parseNote(note);
    const { origin: name, size, root } = parseCheckpoint(parsed.text);
    if (name !== origin || signersOf(parsed, vkeys.map(parseVkey)).length === 0) return undefined;
    if (size > ours) return `a checkpoint of ${size} records has our signature, and the log has ${ours}`;
    if (size === 0 || root.equals(await rootAt(sql, logId, size))) return undefined;
    return `a checkpoint of ${size} records has our signature, and another root than the log`;
  } catch (error) {
    if (error instanceof NoteError) return undefined;
    throw error;
  }
}

/**
 * Asks a witness for the checkpoint that it has of our log.
 * @returns it, where it is evidence; undefined: it is not, or the witness does not show it
 */
export async function forkEvidence(
  sql: Sql,
  { origin }: LogState,
  prefix: string,
): Promise<{ readonly problem: string; readonly note: string } | undefined> {
  const name = createHash('sha256').update(origin).digest('hex');
  const shown = await ask(`${prefix}/${name}/checkpoint`).catch(() => undefined);
  if (shown?.status !== 200) return undefined;
  const problem = await judgeEvidence(sql, (await logState(sql))!, shown.text);
  return problem === undefined ? undefined : { problem, note: shown.text };
}
