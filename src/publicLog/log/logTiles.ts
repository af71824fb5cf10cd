/**
 * Computes Merkle paths in the public log from its tiles, which are cached. A tile of a given width never
 * changes while the log only grows, but it may change if Postgres is restored to an older state. So each path
 * is verified against the root of its checkpoint before the path is returned, and the cache is cleared after
 * a mismatch.
 */
import { parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import { parseNote } from '../../domain/publicLog/notes.js';
import { Subtrees } from '../../domain/publicLog/subtrees.js';
import { indexInTile, TILE_HEIGHT, tilesRead, tileWith } from '../../domain/publicLog/tiles.js';
import {
  HASH_BYTES,
  inclusionPath,
  leafHash,
  type ReadHash,
  rootByInclusion,
} from '../../domain/publicLog/tree.js';
import { KnownSubtrees } from './knownSubtrees.js';
import type { Covering, LoggedEntry, PublicLogReads } from './publicLogReads.store.js';

type Place = ReturnType<typeof tileWith>;

const keyOf = (logId: number, { level, index, width }: Place): string =>
  `${logId}/${level}/${index}/${width}`;

export class LogTiles {
  readonly #kept = new KnownSubtrees();

  constructor(private readonly reads: Pick<PublicLogReads, 'tiles'>) {}

  /**
   * Returns the path that proves a record's inclusion in a checkpoint.
   * @throws Error if the stored tiles do not prove the record
   */
  async path(
    { logId, logIndex }: Pick<LoggedEntry, 'logId' | 'logIndex'>,
    record: Buffer,
    { size, note }: Covering,
  ): Promise<Buffer[]> {
    const { root } = parseCheckpoint(parseNote(note).text);
    const leaf = leafHash(record);
    for (let times = 0; times < 2; times++) {
      const path = await this.#path(logId, logIndex, size);
      if (rootByInclusion(logIndex, size, leaf, path)?.equals(root)) return path;
      this.#kept.clear();
    }
    throw new Error(`The tiles do not prove record ${logIndex} of the public log`);
  }

  async #path(logId: number, logIndex: number, size: number): Promise<Buffer[]> {
    const made = (read: ReadHash): Buffer[] => inclusionPath(logIndex, size, read);
    const tiles = await this.#tiles(logId, tilesRead(size, made));
    return made((level, index) => {
      const place = tileWith(level, index, size);
      return tiles.get(keyOf(logId, place))!.read(level % TILE_HEIGHT, indexInTile(level, index, place));
    });
  }

  async #tiles(logId: number, places: readonly Place[]): Promise<ReadonlyMap<string, Subtrees>> {
    const found = new Map<string, Subtrees>();
    const missing = places.filter((place) => {
      const kept = this.#kept.find(keyOf(logId, place));
      if (kept !== undefined) found.set(keyOf(logId, place), kept);
      return kept === undefined;
    });
    if (missing.length === 0) return found;
    const stored = await this.reads.tiles(logId, missing);
    for (const place of missing) {
      const bytes = stored.get(`${place.level}/${place.index}`)?.subarray(0, place.width * HASH_BYTES);
      if (bytes?.length !== place.width * HASH_BYTES)
        throw new Error('A tile of the public log is too short');
      const subtrees = new Subtrees(bytes);
      found.set(keyOf(logId, place), subtrees);
      this.#kept.keep(keyOf(logId, place), subtrees);
    }
    return found;
  }
}
