/**
 * Tests trees, proofs and tiles against a reference that computes everything directly from the definition.
 */
import { describe, expect, test } from 'vitest';
import {
  bundleOf,
  hashInTile,
  newTiles,
  parseTilePath,
  recordsOf,
  TILE_WIDTH,
  tileOf,
  tileOfRecords,
  tilePath,
  tileWith,
  widthAt,
} from '../../../src/domain/publicLog/tiles.js';
import {
  consistencyPath,
  EMPTY_ROOT,
  inclusionPath,
  isConsistent,
  leafHash,
  MemoryTree,
  nodeHash,
  rootByInclusion,
  rootOf,
} from '../../../src/domain/publicLog/tree.js';

/** A literal implementation of RFC 6962 section 2.1. */
function reference(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return EMPTY_ROOT;
  if (leaves.length === 1) return leaves[0]!;
  let middle = 1;
  while (middle * 2 < leaves.length) middle *= 2;
  return nodeHash(reference(leaves.slice(0, middle)), reference(leaves.slice(middle)));
}

const recordOf = (index: number): Buffer => Buffer.from(`record ${index}`);
const leavesUpTo = (size: number): Buffer[] =>
  Array.from({ length: size }, (_, index) => leafHash(recordOf(index)));

describe('Merkle trees', () => {
  // The leaves and roots that the tests of Certificate Transparency (RFC 6962) have used since 2013.
  test('computes the tree roots that Certificate Transparency publishes', () => {
    const data = [
      '',
      '00',
      '10',
      '2021',
      '3031',
      '40414243',
      '5051525354555657',
      '606162636465666768696a6b6c6d6e6f',
    ];
    const roots = [
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
      'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
      '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
      '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
      'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
      '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
    ];
    const tree = new MemoryTree(data.map((hex) => leafHash(Buffer.from(hex, 'hex'))));
    expect(roots.map((_, at) => tree.root(at + 1).toString('hex'))).toEqual(roots);
    expect(new MemoryTree().root().toString('hex')).toBe(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    );
  });

  test('proves the inclusion of each leaf in Merkle trees of each size, and rejects every wrong proof', () => {
    const leaves = leavesUpTo(40);
    const tree = new MemoryTree(leaves);
    for (let size = 1; size <= 40; size++) {
      const root = reference(leaves.slice(0, size));
      expect(tree.root(size)).toEqual(root);
      for (let index = 0; index < size; index++) {
        const path = inclusionPath(index, size, tree.read);
        expect(rootByInclusion(index, size, leaves[index]!, path)).toEqual(root);
        expect(rootByInclusion(index, size, leaves[index]!, [...path, root])).toBeUndefined();
        if (path.length > 0) {
          expect(rootByInclusion(index, size, leaves[index]!, path.slice(1))).toBeUndefined();
          expect(rootByInclusion(index, size, leafHash(Buffer.of(1)), path)).not.toEqual(root);
        }
        if (index + 1 < size)
          expect(rootByInclusion(index + 1, size, leaves[index]!, path)).not.toEqual(root);
      }
    }
    expect(rootByInclusion(1, 1, leaves[0]!, [])).toBeUndefined();
  });

  test('proves that each Merkle tree contains each smaller one, and rejects the proof for every other tree', () => {
    const leaves = leavesUpTo(33);
    const tree = new MemoryTree(leaves);
    const other = leafHash(Buffer.of(2));
    for (let size = 1; size <= 33; size++) {
      for (let old = 1; old <= size; old++) {
        const path = consistencyPath(old, size, tree.read);
        const [older, newer] = [old, size].map((each) => ({ size: each, root: tree.root(each) }));
        expect(isConsistent(older!, newer!, path)).toBe(true);
        expect(isConsistent({ size: old, root: other }, newer!, path)).toBe(false);
        expect(isConsistent(older!, { size, root: other }, path)).toBe(false);
        expect(isConsistent(older!, newer!, [...path, other])).toBe(false);
        path.forEach((_, at) => {
          expect(isConsistent(older!, newer!, path.with(at, other))).toBe(false);
        });
      }
    }
    const one = { size: 1, root: tree.root(1) };
    expect(isConsistent({ size: 0, root: EMPTY_ROOT }, one, [])).toBe(false);
    expect(isConsistent({ size: 2, root: tree.root(2) }, one, [])).toBe(false);
  });
});

describe('tiles of a Merkle tree', () => {
  test('reads and writes tile paths as C2SP does, and accepts one spelling for each tile', () => {
    const paths = {
      'tile/0/x001/x234/067': { level: 0, index: 1_234_067, width: 256 },
      'tile/0/000': { level: 0, index: 0, width: 256 },
      'tile/63/999.p/1': { level: 63, index: 999, width: 1 },
      'tile/entries/x001/000.p/255': { level: 'entries' as const, index: 1000, width: 255 },
    };
    for (const [path, place] of Object.entries(paths)) {
      expect(tilePath(place)).toBe(path);
      expect(parseTilePath(path)).toEqual(place);
    }
    const wrong =
      '64/000 00/000 0/0 0/x000/000 0/001.p/0 0/001.p/256 0/001.p/01 0/x001 0/1000 -1/000 0/000.p/1/'.split(
        ' ',
      );
    for (const path of [...wrong, 'data/000', '0/x999/x999/x999/x999/x999/999']) {
      expect(parseTilePath(`tile/${path}`), path).toBeUndefined();
    }
  });

  test('builds the same tiles of 70,000 records as a reference, and reads every hash of the tree from them', () => {
    const size = 70_000;
    const leaves = leavesUpTo(size);
    const tree = new MemoryTree(leaves);
    expect(tree.root()).toEqual(reference(leaves));
    // The reference builds each level from the whole tiles of the level below.
    const levels = [leaves];
    while (levels.at(-1)!.length >= TILE_WIDTH) {
      const below = levels.at(-1)!;
      const whole = Math.floor(below.length / TILE_WIDTH);
      levels.push(Array.from({ length: whole }, (_, at) => reference(below.slice(at * 256, at * 256 + 256))));
    }
    const places = newTiles(0, size);
    expect(places.filter(({ level }) => level === 'entries')).toHaveLength(274);
    expect(places.map(({ level }) => level).filter((level) => level !== 0 && level !== 'entries')).toEqual([
      ...[1, 1, 2],
    ]);
    const tiles = new Map<string, Buffer>();
    for (const place of places) {
      const { level, index, width } = place;
      expect(width).toBe(widthAt(level, index, size));
      if (level === 'entries') continue;
      const tile = tileOf(level, index, width, tree.read);
      tiles.set(tilePath(place), tile);
      expect(tile.equals(Buffer.concat(levels[level]!.slice(index * 256, index * 256 + width)))).toBe(true);
    }
    const read = (level: number, index: number): Buffer =>
      hashInTile(tiles.get(tilePath(tileWith(level, index, size)))!, level, index);
    expect(rootOf(size, read)).toEqual(tree.root());
    for (const index of [0, 255, 256, 65_535, 65_536, 69_999]) {
      expect(inclusionPath(index, size, read)).toEqual(inclusionPath(index, size, tree.read));
    }
    for (const old of [1, 257, 65_536, 65_537, 69_888, 70_000]) {
      expect(consistencyPath(old, size, read)).toEqual(consistencyPath(old, size, tree.read));
    }
  });

  test('lists exactly those tiles of a log that a smaller size of the log lacks', () => {
    const spelled = (old: number, size: number) => newTiles(old, size).map(tilePath);
    expect(spelled(255, 257)).toEqual(
      'tile/entries/000 tile/entries/001.p/1 tile/0/000 tile/0/001.p/1 tile/1/000.p/1'.split(' '),
    );
    expect(spelled(256, 257)).toEqual(['tile/entries/001.p/1', 'tile/0/001.p/1']);
    expect(spelled(257, 257)).toEqual([]);
  });

  test('reads records back from their bundle, and rejects a bundle that ends inside a record', () => {
    const records = [0, 1, 2].map(recordOf);
    const bundle = bundleOf([...records, Buffer.alloc(0)]);
    expect(recordsOf(bundle)).toEqual([...records, Buffer.alloc(0)]);
    expect(recordsOf(bundle.subarray(0, -1))).toBeUndefined();
    expect(recordsOf(Buffer.of(0, 1))).toBeUndefined();
    expect(tileOfRecords(records)).toEqual(Buffer.concat(leavesUpTo(3)));
    expect(() => bundleOf([Buffer.alloc(65_536)])).toThrow(RangeError);
  });
});
