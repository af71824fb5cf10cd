/**
 * Reads a log over HTTP or from a folder (C2SP tlog-tiles): its checkpoint, and the tiles that prove one tree
 * consistent with another.
 */
import { join } from 'node:path';
import { type Checkpoint, parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import { type Note, NoteError, parseNote, signersOf, type Verifier } from '../../domain/publicLog/notes.js';
import {
  cutTile,
  hashInTile,
  recordsOf,
  TILE_WIDTH,
  type TilePlace,
  tilePath,
  tilesRead,
  tileWith,
  widthAt,
} from '../../domain/publicLog/tiles.js';
import { consistencyPath, HASH_BYTES, isConsistent, rootOf } from '../../domain/publicLog/tree.js';
import { readIfThere } from '../../platform/files.js';
import { boundedRequest } from '../../platform/runtime/boundedRequest.js';

const WITHIN_MS = 30_000;
const NOTE_MAX = 1_000_000;
/** Maximum size of a bundle: 256 records of at most 65,535 bytes. */
const BUNDLE_MAX = TILE_WIDTH * 65_537;
/** Number of tiles requested concurrently. */
const AT_ONCE = 8;

/** Thrown if a log gives an invalid response or none. A later attempt may succeed. */
export class LogError extends Error {}

export interface SeenCheckpoint {
  /** Text of the checkpoint as the log serves it. */
  readonly text: string;
  readonly note: Note;
  readonly checkpoint: Checkpoint;
  /** Known keys that signed the checkpoint. */
  readonly signers: readonly Verifier[];
}

/**
 * The result is undefined if the file does not exist.
 * @param most maximum size in bytes
 * @throws LogError if the log does not respond or the file is larger
 */
type ReadFile = (path: string, most: number) => Promise<Buffer | undefined>;

const overHttp =
  (prefix: string): ReadFile =>
  async (path, most) => {
    try {
      const { status, body } = await boundedRequest(`${prefix}/${path}`, {
        bytesMax: most,
        withinMs: WITHIN_MS,
      });
      if (status === 404) return undefined;
      if (status !== 200) throw new Error(`the log answered ${status}`);
      return body;
    } catch (error) {
      const { message, cause } = error as Error;
      throw new LogError(`${path}: ${cause instanceof Error ? cause.message : message}`);
    }
  };

export class LogReader {
  readonly #get: ReadFile;

  /** @param place URL or folder of the log; `checkpoint` and `tile/` are below it */
  constructor(place: string) {
    const prefix = place.replace(/\/+$/, '');
    this.#get = /^https?:\/\//.test(prefix) ? overHttp(prefix) : (path) => readIfThere(join(prefix, path));
  }

  /** @throws LogError if it is not a checkpoint of a known log */
  async checkpoint(logs: readonly Verifier[]): Promise<SeenCheckpoint> {
    const bytes = await this.#get('checkpoint', NOTE_MAX);
    if (bytes === undefined) throw new LogError('checkpoint: the log has not published one yet');
    const text = bytes.toString('utf8');
    try {
      const note = parseNote(text);
      const checkpoint = parseCheckpoint(note.text);
      const keys = logs.filter(({ name }) => name === checkpoint.origin);
      const signers = signersOf(note, keys);
      if (signers.length === 0) throw new NoteError(`no known key of ${checkpoint.origin} signed the note`);
      return { text, note, checkpoint, signers };
    } catch (error) {
      if (error instanceof NoteError) throw new LogError(`checkpoint: ${error.message}`);
      throw error;
    }
  }

  /**
   * Returns a tile or bundle of a given width. If the log has removed the partial tile, the full tile is
   * fetched and cut.
   */
  async tile(place: TilePlace): Promise<Buffer> {
    const { level, width } = place;
    const most = level === 'entries' ? BUNDLE_MAX : TILE_WIDTH * HASH_BYTES;
    const found =
      (await this.#get(tilePath(place), most)) ??
      (width < TILE_WIDTH ? await this.#get(tilePath({ ...place, width: TILE_WIDTH }), most) : undefined);
    if (found === undefined) throw new LogError(`${tilePath(place)}: the log does not have this file`);
    if (level === 'entries') return found;
    if (found.length < width * HASH_BYTES) throw new LogError(`${tilePath(place)}: the file is too short`);
    return found.subarray(0, width * HASH_BYTES);
  }

  /** Returns the records from one position up to another. */
  async records(from: number, to: number, size: number): Promise<Buffer[]> {
    const records: Buffer[] = [];
    for (let index = Math.floor(from / TILE_WIDTH); index * TILE_WIDTH < to; index++) {
      const first = index * TILE_WIDTH;
      const place = { level: 'entries', index, width: widthAt('entries', index, size) } as const;
      const bundle = cutTile(place, await this.tile(place));
      if (bundle === undefined) throw new LogError(`${tilePath(place)}: the file is too short`);
      records.push(...recordsOf(bundle)!.slice(Math.max(0, from - first), to - first));
    }
    return records;
  }

  async #tiles(wanted: readonly TilePlace[]): Promise<ReadonlyMap<string, Buffer>> {
    const found = new Map<string, Buffer>();
    for (let at = 0; at < wanted.length; at += AT_ONCE) {
      await Promise.all(
        wanted.slice(at, at + AT_ONCE).map(async (place) => {
          found.set(tilePath(place), await this.tile(place));
        }),
      );
    }
    return found;
  }

  /**
   * Returns the root of a tree's first records, proven consistent with the tree's own root.
   * @param old number of records, at least 1 and at most the size of the tree
   * @throws LogError if the tiles do not match the tree
   */
  async rootWithin(old: number, { size, root }: Checkpoint): Promise<Buffer> {
    const wanted = tilesRead(size, (read) => [consistencyPath(old, size, read), rootOf(old, read)]);
    const tiles = await this.#tiles(wanted);
    const read = (level: number, index: number): Buffer =>
      hashInTile(tiles.get(tilePath(tileWith(level, index, size)))!, level, index);
    const older = rootOf(old, read);
    const isProven =
      old === size
        ? older.equals(root)
        : isConsistent({ size: old, root: older }, { size, root }, consistencyPath(old, size, read));
    if (!isProven) throw new LogError(`the tiles do not match the tree of ${size} records`);
    return older;
  }
}
