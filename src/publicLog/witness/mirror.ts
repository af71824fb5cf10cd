/**
 * Mirrors the files of a log in a folder: tiles, bundles of records and the checkpoint. Every file is
 * verified against the checkpoint.
 */
import { join } from 'node:path';
import { parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import { parseNote } from '../../domain/publicLog/notes.js';
import {
  cutTile,
  hashInTile,
  newTiles,
  recordsOf,
  type TilePlace,
  tileOfRecords,
  tilePath,
  tileWith,
} from '../../domain/publicLog/tiles.js';
import { HASH_BYTES, MemoryTree, rootOf } from '../../domain/publicLog/tree.js';
import { readIfThere, writeDurably } from '../../platform/files.js';
import { LogError, type LogReader, type SeenCheckpoint } from './logReader.js';

const TILE_WIDTH = 256;

export class Mirror {
  constructor(
    private readonly folder: string,
    private readonly log: LogReader,
  ) {}

  #path(place: TilePlace): string {
    return join(this.folder, tilePath(place));
  }

  async #kept(place: TilePlace): Promise<Buffer> {
    const bytes = await readIfThere(this.#path(place));
    if (bytes === undefined) throw new LogError(`the mirror lacks ${tilePath(place)}`);
    return bytes;
  }

  /** Fetches missing files. Existing full tiles are kept, so that an interrupted mirror run continues. */
  async follow({ text, checkpoint }: SeenCheckpoint): Promise<void> {
    const note = (await readIfThere(join(this.folder, 'checkpoint')))?.toString('utf8');
    const mirrored = note === undefined ? 0 : parseCheckpoint(parseNote(note).text).size;
    const { size, root } = checkpoint;
    if (size < mirrored) return;
    for (const place of newTiles(mirrored, size)) {
      if (place.width === TILE_WIDTH && (await readIfThere(this.#path(place))) !== undefined) continue;
      const bytes = await this.log.tile(place);
      await this.#verify(place, bytes);
      await writeDurably(this.#path(place), cutTile(place, bytes)!, { isPublic: true });
    }
    const tiles = new Map<string, Buffer>();
    const wanted: TilePlace[] = [];
    rootOf(size, (level, index) => {
      wanted.push(tileWith(level, index, size));
      return root;
    });
    for (const place of wanted) tiles.set(tilePath(place), await this.#kept(place));
    const found = rootOf(size, (level, index) =>
      hashInTile(tiles.get(tilePath(tileWith(level, index, size)))!, level, index),
    );
    if (size > 0 && !found.equals(root))
      throw new LogError('the tiles do not match the root of the checkpoint');
    await writeDurably(join(this.folder, 'checkpoint'), text, { isPublic: true });
  }

  /** Verifies a tile against the tiles or records of the level below, which are fetched first. */
  async #verify({ level, index, width }: TilePlace, bytes: Buffer): Promise<void> {
    const wrong = (): LogError =>
      new LogError(`${tilePath({ level, index, width })} does not match the level below it`);
    if (level === 'entries') {
      if ((recordsOf(bytes)?.length ?? 0) < width) throw wrong();
      return;
    }
    if (level === 0) {
      const records = recordsOf(await this.#kept({ level: 'entries', index, width }))!;
      if (!tileOfRecords(records).equals(bytes)) throw wrong();
      return;
    }
    for (let at = 0; at < width; at++) {
      const below = await this.#kept({ level: level - 1, index: index * TILE_WIDTH + at, width: TILE_WIDTH });
      const hashes = Array.from({ length: TILE_WIDTH }, (_, i) =>
        below.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES),
      );
      if (!new MemoryTree(hashes).root().equals(bytes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES)))
        throw wrong();
    }
  }
}
