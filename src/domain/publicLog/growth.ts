/** Computes the tiles and the root of a log after records are appended. */
import { Subtrees } from './subtrees.js';
import { bundleOf, indexInTile, TILE_HEIGHT, TILE_WIDTH, tileWith } from './tiles.js';
import { leafHash, rootOf } from './tree.js';

export interface StoredTile {
  /** Level of the tile: -1 for a bundle of records, otherwise a tile of hashes of level 8 × this number. */
  readonly level: number;
  readonly index: number;
  readonly bytes: Buffer;
}

/** Level number that stands for the bundles of records. */
export const BUNDLES = -1;

const widthOf = (size: number, level: number): number =>
  Math.floor(size / TILE_WIDTH ** Math.max(level, 0)) % TILE_WIDTH;

/** Returns the tiles that are not full when the log has a given size. They suffice to extend the log. */
export function openTiles(size: number): { readonly level: number; readonly index: number }[] {
  const open: { level: number; index: number }[] = [];
  for (let level = BUNDLES; TILE_WIDTH ** Math.max(level, 0) <= size; level++) {
    if (widthOf(size, level) === 0) continue;
    open.push({ level, index: Math.floor(size / TILE_WIDTH ** (Math.max(level, 0) + 1)) });
  }
  return open;
}

/** Appends bytes to a level. Returns the tiles that become full, and the tile that remains open. */
function extend(level: number, first: number, bytes: Buffer, width: number, more: readonly Buffer[]) {
  const full: StoredTile[] = [];
  let parts = [bytes];
  let count = width;
  let index = first;
  for (const part of more) {
    parts.push(part);
    if (++count < TILE_WIDTH) continue;
    full.push({ level, index, bytes: Buffer.concat(parts) });
    parts = [];
    count = 0;
    index++;
  }
  return { full, open: { level, index, bytes: Buffer.concat(parts) } };
}

const hashOfTile = (bytes: Buffer): Buffer => new Subtrees(bytes).read(TILE_HEIGHT, 0);

/**
 * @param tiles open tiles at the present size ({@link openTiles})
 * @returns the new size and root, and the new or extended tiles
 * @throws RangeError if an open tile is missing
 */
export function grow(
  size: number,
  tiles: readonly StoredTile[],
  records: readonly Buffer[],
): { readonly size: number; readonly root: Buffer; readonly tiles: StoredTile[] } {
  const grown = size + records.length;
  const changed: StoredTile[] = [];
  const edge: Buffer[] = [];
  const openAt = (level: number): Buffer => {
    const found = tiles.find((tile) => tile.level === level);
    if (found === undefined && widthOf(size, level) > 0) {
      throw new RangeError(`The tile of level ${level} is missing`);
    }
    return found?.bytes ?? Buffer.alloc(0);
  };
  const add = (level: number, more: readonly Buffer[]): StoredTile[] => {
    const first = Math.floor(size / TILE_WIDTH ** (Math.max(level, 0) + 1));
    const { full, open } = extend(level, first, openAt(level), widthOf(size, level), more);
    changed.push(...full);
    if (more.length > 0 && open.bytes.length > 0) changed.push(open);
    edge[level] = open.bytes;
    return full;
  };
  add(
    BUNDLES,
    records.map((record) => bundleOf([record])),
  );
  let hashes = records.map(leafHash);
  for (let level = 0; TILE_WIDTH ** level <= grown; level++) {
    hashes = add(level, hashes).map(({ bytes }) => hashOfTile(bytes));
  }
  const last = edge.map((bytes) => new Subtrees(bytes));
  const root = rootOf(grown, (level, index) => {
    const place = tileWith(level, index, grown);
    return last[place.level]!.read(level % TILE_HEIGHT, indexInTile(level, index, place));
  });
  return { size: grown, root, tiles: changed };
}
