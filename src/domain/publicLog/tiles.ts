/** Tiles of a log (C2SP tlog-tiles): tiles of 256 hashes for every 8th level, and bundles of 256 records. */
import { EMPTY_ROOT, HASH_BYTES, leafHash, nodeHash, type ReadHash } from './tree.js';

export const TILE_WIDTH = 256;
export const TILE_HEIGHT = 8;
const LEVELS = 64;

export interface TilePlace {
  /**
   * Level of the tile: it has hashes of level 8 × this number, 0 to 63; `entries` for a bundle of records.
   */
  readonly level: number | 'entries';
  readonly index: number;
  /** Number of hashes or records in the tile, 1 to 256. */
  readonly width: number;
}

/** Returns the path below the log's prefix, such as `tile/0/x001/234.p/17`. */
export function tilePath({ level, index, width }: TilePlace): string {
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/.{3}/g)!;
  const spelled = groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join('/');
  return `tile/${level}/${spelled}${width < TILE_WIDTH ? `.p/${width}` : ''}`;
}

/** @returns undefined if the path is not the canonical path of a tile */
export function parseTilePath(path: string): TilePlace | undefined {
  const parts =
    /^tile\/(entries|[0-9]{1,2})\/((?:x[0-9]{3}\/){0,5}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/.exec(path);
  if (parts === null) return undefined;
  const index = Number(parts[2]!.replace(/[x/]/g, ''));
  const width = parts[3] === undefined ? TILE_WIDTH : Number(parts[3]);
  const level = parts[1] === 'entries' ? ('entries' as const) : Number(parts[1]);
  const place = { level, index, width };
  const isPlace = Number.isSafeInteger(index) && (level === 'entries' || level < LEVELS);
  return isPlace && tilePath(place) === path ? place : undefined;
}

/** Returns how many hashes or records a tile has when the log has a given size; 0 if it has none yet. */
export function widthAt(level: TilePlace['level'], index: number, size: number): number {
  const all = level === 'entries' ? size : Math.floor(size / TILE_WIDTH ** level);
  return Math.max(0, Math.min(TILE_WIDTH, all - index * TILE_WIDTH));
}

/**
 * Lists all tiles that are new or wider at one size of the log than at a smaller size, with their width at
 * the larger size.
 */
export function newTiles(old: number, size: number): TilePlace[] {
  const places: TilePlace[] = [];
  const add = (level: TilePlace['level'], before: number, all: number): void => {
    for (let index = Math.floor(before / TILE_WIDTH); index * TILE_WIDTH < all; index++) {
      const width = Math.min(TILE_WIDTH, all - index * TILE_WIDTH);
      if (index * TILE_WIDTH + width > before) places.push({ level, index, width });
    }
  };
  add('entries', old, size);
  for (let level = 0, before = old, all = size; all > 0; level++) {
    add(level, before, all);
    before = Math.floor(before / TILE_WIDTH);
    all = Math.floor(all / TILE_WIDTH);
  }
  return places;
}

export function tileOf(level: number, index: number, width: number, read: ReadHash): Buffer {
  const hashes = Array.from({ length: width }, (_, at) => read(level * TILE_HEIGHT, index * TILE_WIDTH + at));
  return Buffer.concat(hashes);
}

/**
 * Returns the tile from which the hash of a complete subtree is computed.
 * @param size size of the log, which determines the width
 */
export function tileWith(level: number, index: number, size: number): TilePlace & { level: number } {
  const tileLevel = Math.floor(level / TILE_HEIGHT);
  const tile = Math.floor((index * 2 ** (level % TILE_HEIGHT)) / TILE_WIDTH);
  return { level: tileLevel, index: tile, width: widthAt(tileLevel, tile, size) };
}

/**
 * Returns the position of a subtree in its tile, among the subtrees of the same level.
 * @param place position of the tile ({@link tileWith})
 */
export const indexInTile = (level: number, index: number, place: { readonly index: number }): number =>
  index - place.index * 2 ** (TILE_HEIGHT - (level % TILE_HEIGHT));

/**
 * Lists the tiles that a computation reads to get the hashes of subtrees.
 * @param size as in {@link tileWith}
 */
export function tilesRead(
  size: number,
  compute: (read: ReadHash) => unknown,
): (TilePlace & { level: number })[] {
  const places = new Map<string, TilePlace & { level: number }>();
  compute((level, index) => {
    const place = tileWith(level, index, size);
    places.set(tilePath(place), place);
    return EMPTY_ROOT;
  });
  return [...places.values()];
}

/** @throws RangeError if the tile is too short */
export function hashInTile(tile: Buffer, level: number, index: number): Buffer {
  const count = 2 ** (level % TILE_HEIGHT);
  const from = ((index * count) % TILE_WIDTH) * HASH_BYTES;
  if (tile.length < from + count * HASH_BYTES) throw new RangeError('The tile is too short');
  let hashes = Array.from({ length: count }, (_, at) =>
    tile.subarray(from + at * HASH_BYTES, from + (at + 1) * HASH_BYTES),
  );
  while (hashes.length > 1) {
    const below = hashes;
    hashes = Array.from({ length: below.length / 2 }, (_, at) =>
      nodeHash(below[2 * at]!, below[2 * at + 1]!),
    );
  }
  return hashes[0]!;
}

/** @throws RangeError if a record has more than 65,535 bytes */
export function bundleOf(records: readonly Buffer[]): Buffer {
  return Buffer.concat(
    records.flatMap((record) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(record.length);
      return [length, record];
    }),
  );
}

/** @returns undefined if the bundle is truncated within a record */
export function recordsOf(bundle: Buffer): Buffer[] | undefined {
  const records: Buffer[] = [];
  for (let at = 0; at < bundle.length; ) {
    if (at + 2 > bundle.length) return undefined;
    const end = at + 2 + bundle.readUInt16BE(at);
    if (end > bundle.length) return undefined;
    records.push(bundle.subarray(at + 2, end));
    at = end;
  }
  return records;
}

/**
 * Returns the first `width` records of a bundle or hashes of a tile.
 * @returns undefined if there are fewer
 */
export function cutTile({ level, width }: TilePlace, bytes: Buffer): Buffer | undefined {
  if (level !== 'entries')
    return bytes.length < width * HASH_BYTES ? undefined : bytes.subarray(0, width * HASH_BYTES);
  const records = recordsOf(bytes)?.slice(0, width) ?? [];
  const length = records.reduce((sum, record) => sum + 2 + record.length, 0);
  return records.length < width ? undefined : bytes.subarray(0, length);
}

/** Builds the tile of level 0 from the records of a bundle. */
export const tileOfRecords = (records: readonly Buffer[]): Buffer => Buffer.concat(records.map(leafHash));
