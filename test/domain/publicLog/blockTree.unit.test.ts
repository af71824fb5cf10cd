/** Tests that the stored part of a block's tree gives the same root and paths as the whole tree. */
import { expect, test } from 'vitest';
import {
  blockPath,
  type KeptParts,
  keptFor,
  outcomeLeaves,
  type Remember,
  rootOfTree,
  sealTree,
  shoeLeaves,
} from '../../../src/domain/publicLog/blockTree.js';
import { grow, openTiles, type StoredTile } from '../../../src/domain/publicLog/growth.js';
import { leafKeyOf, leafNonces, outcomeLeafData } from '../../../src/domain/publicLog/leaves.js';
import type { Subtrees } from '../../../src/domain/publicLog/subtrees.js';
import { recordsOf, tileOf } from '../../../src/domain/publicLog/tiles.js';
import { inclusionPath, leafHash, MemoryTree, rootByInclusion } from '../../../src/domain/publicLog/tree.js';

const NONCE = Buffer.alloc(32, 7);
const GAME = { gameId: 9, fromIndex: 2 ** 33 + 5 };

/** Returns the stored hashes that the path of a leaf needs. */
function keptOf(tree: Uint8Array, place: number, count: number): KeptParts {
  const part = ({ from, length }: { from: number; length: number }) =>
    Buffer.from(tree.subarray(from, from + length));
  const { own, last, high } = keptFor(place, count);
  return { own: part(own), last: part(last), high: part(high) };
}

test.each([1, 2, 3, 255, 256, 257, 511, 513, 65_536, 70_001, 131_372])(
  'computes the root and all paths of a block of %i outcomes from the stored part of its tree',
  (count) => {
    const codes = Uint16Array.from({ length: count }, (_, at) => at % 7);
    const key = leafKeyOf({ ...GAME, nonce: NONCE });
    const nonces = (first: number, wanted: number): Buffer => leafNonces(key, wanted, first);
    const all = leafNonces(key, count);
    const reference = new MemoryTree(
      Array.from({ length: count }, (_, at) => {
        const place = { gameId: GAME.gameId, index: GAME.fromIndex + at };
        return leafHash(outcomeLeafData(place, codes[at]!, all.subarray(32 * at, 32 * at + 32)));
      }),
    );
    const tree = sealTree(outcomeLeaves({ ...GAME, codes, nonces }));
    const known = new Map<string, Subtrees>();
    const remember: Remember = (name, make) => {
      if (!known.has(name)) known.set(name, make());
      return known.get(name)!;
    };
    expect(rootOfTree(tree)).toEqual(reference.root());
    for (const place of new Set([0, 1, count >> 1, count - 1].filter((at) => at < count))) {
      const leaves = (from: number, to: number) => outcomeLeaves({ ...GAME, codes, nonces }, from, to);
      const path = blockPath(place, count, keptOf(tree, place, count), leaves, remember);
      expect(path).toEqual(inclusionPath(place, count, reference.read));
      expect(rootByInclusion(place, count, reference.read(0, place), path)).toEqual(reference.root());
    }
    const none = () => Buffer.alloc(0);
    expect(() => blockPath(count, count, keptOf(tree, count, count), none, remember)).toThrow(RangeError);
    expect(() => blockPath(0, count + 256, keptOf(tree, 0, count), none, remember)).toThrow(RangeError);
  },
);

test('the leaves of a block of shoes are in the order of the shoes', () => {
  const commitments = [1, 2, 3].map((value) => Buffer.alloc(32, value));
  const leaves = shoeLeaves(9, 40, commitments);
  expect(leaves.subarray(32, 64)).toEqual(shoeLeaves(9, 41, [commitments[1]!]));
});

test('builds the same tiles and root for a log that grows in steps as for a log made at once', () => {
  const records = Array.from({ length: 70_000 }, (_, at) => Buffer.from(`record ${at}`));
  const whole = new MemoryTree(records.map(leafHash));
  const stored = new Map<string, StoredTile>();
  let size = 0;
  for (const step of [1, 2, 255, 1, 300, 4096, 61_000, 4345]) {
    const open = openTiles(size).map(({ level, index }) => stored.get(`${level}/${index}`)!);
    const grown = grow(size, open, records.slice(size, size + step));
    size = grown.size;
    for (const tile of grown.tiles) stored.set(`${tile.level}/${tile.index}`, tile);
    expect(grown.root).toEqual(whole.root(size));
  }
  expect(size).toBe(70_000);
  const [bundles, tiles] = [[] as Buffer[], [] as StoredTile[]];
  for (const tile of stored.values()) {
    if (tile.level >= 0) tiles.push(tile);
    else bundles[tile.index] = tile.bytes;
  }
  expect(bundles.flatMap((bundle) => recordsOf(bundle)!)).toEqual(records);
  expect(tiles.length).toBe(Math.ceil(70_000 / 256) + 2 + 1);
  for (const { level, index, bytes } of tiles)
    expect(bytes.equals(tileOf(level, index, bytes.length / 32, whole.read))).toBe(true);
  expect(() => grow(5, [], records.slice(5, 6))).toThrow(RangeError);
});
