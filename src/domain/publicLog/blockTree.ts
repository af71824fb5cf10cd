/**
 * Merkle tree over the leaves of a sealed block. The block stores the root, and the hash of each full group
 * of 256 and of 65,536 leaves, one after another (a sixteenth of the size of the outcomes). The other hashes
 * are computed again when the path of a leaf is requested.
 */
import { shoeLeafData } from './leaves.js';
import { type Hashes, hashPairs, newHashes, Subtrees, writeHash } from './subtrees.js';
import { HASH_BYTES, inclusionPath, leafHash, type ReadHash } from './tree.js';

/** Groups of leaves in a block's tree whose hashes are stored, by level. */
const LOW = { level: 8, leaves: 2 ** 8 };
const HIGH = { level: 16, leaves: 2 ** 16 };
/**
 * A path needs the hashes of the leaves of at most two groups: the leaf's own group, and the last group,
 * which may not be full.
 */
export const GROUP_LEAVES = LOW.leaves;

const NONCE_BYTES = 32;
const NONCES_AT_ONCE = 4096;
const TWO_32 = 2 ** 32;

/** Outcome codes of a block, and the nonces of the block's leaves (leaves.ts). */
export interface BlockOfOutcomes {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly codes: Uint16Array;
  /** Returns nonces of the block's outcomes from `first` on, 32 bytes each. */
  readonly nonces: (first: number, count: number) => Buffer;
}

/** Offsets in the encoded leaf of an outcome (leaves.ts): 0x00, `SPDLout1`, game, index, code, nonce. */
const LEAF = { game: 9, index: 13, code: 21, nonce: 23, bytes: 55 };

export function outcomeLeaves(
  { gameId, fromIndex, codes, nonces }: BlockOfOutcomes,
  from = 0,
  to = codes.length,
): Hashes {
  const hashes = newHashes(to - from);
  const leaf = Buffer.alloc(LEAF.bytes);
  leaf.write('SPDLout1', 1, 'latin1');
  leaf.writeUInt32BE(gameId, LEAF.game);
  for (let first = from; first < to; first += NONCES_AT_ONCE) {
    const end = Math.min(to, first + NONCES_AT_ONCE);
    const bytes = nonces(first, end - first);
    for (let i = first; i < end; i++) {
      const index = fromIndex + i;
      leaf.writeUInt32BE(Math.floor(index / TWO_32), LEAF.index);
      leaf.writeUInt32BE(index % TWO_32, LEAF.index + 4);
      leaf.writeUInt16BE(codes[i]!, LEAF.code);
      bytes.copy(leaf, LEAF.nonce, (i - first) * NONCE_BYTES, (i - first + 1) * NONCE_BYTES);
      writeHash(hashes, i - from, leaf);
    }
  }
  return hashes;
}

/** @param commitments commitments of the shoes, 32 bytes each */
export function shoeLeaves(gameId: number, fromIndex: number, commitments: readonly Buffer[]): Hashes {
  const hashes = newHashes(commitments.length);
  for (const [i, commitment] of commitments.entries()) {
    leafHash(shoeLeafData({ gameId, index: fromIndex + i }, commitment)).copy(hashes, i * HASH_BYTES);
  }
  return hashes;
}

/**
 * Returns the stored hashes of the tree over leaves: the root, the hashes of groups of 256, the hashes of
 * groups of 65,536.
 * @param leaves hashes of the leaves; overwritten
 */
export function sealTree(leaves: Hashes): Uint8Array {
  const kept: Buffer[] = [];
  const all = leaves.length / HASH_BYTES;
  let width = all;
  for (let level = 1; width > 1; level++) {
    const pairs = Math.floor(width / 2);
    hashPairs(leaves, pairs);
    // A node without a sibling is promoted to the next level unchanged.
    if (width % 2 === 1) leaves.copyWithin(pairs * HASH_BYTES, (width - 1) * HASH_BYTES, width * HASH_BYTES);
    width = Math.ceil(width / 2);
    if (level === LOW.level || level === HIGH.level) {
      kept.push(Buffer.from(leaves.subarray(0, Math.floor(all / 2 ** level) * HASH_BYTES)));
    }
  }
  return Uint8Array.from(Buffer.concat([leaves.subarray(0, HASH_BYTES), ...kept]));
}

/** Returns the root, given the stored hashes of {@link sealTree}. */
export const rootOfTree = (tree: Uint8Array): Buffer => Buffer.from(tree.subarray(0, HASH_BYTES));

/** Range of bytes in the stored hashes of {@link sealTree}. */
interface KeptRange {
  readonly from: number;
  readonly length: number;
}

/**
 * Stored hashes that the path of a leaf needs: of the groups of 256 within the leaf's own group of 65,536 and
 * within the last one, and of all groups of 65,536.
 */
export interface KeptRanges {
  readonly own: KeptRange;
  readonly last: KeptRange;
  readonly high: KeptRange;
}

const RUN_GROUPS = HIGH.leaves / LOW.leaves;

/**
 * Returns the byte ranges of the stored hashes that the path of a leaf needs.
 * @param place index of the leaf in the block, from 0
 * @param count number of leaves of the block
 */
export function keptFor(place: number, count: number): KeptRanges {
  const groups = Math.floor(count / LOW.leaves);
  const runs = Math.floor(count / HIGH.leaves);
  const ofRun = (run: number): KeptRange => ({
    from: (1 + run * RUN_GROUPS) * HASH_BYTES,
    length: Math.max(0, Math.min(RUN_GROUPS, groups - run * RUN_GROUPS)) * HASH_BYTES,
  });
  const own = Math.floor(place / HIGH.leaves);
  return {
    own: ofRun(own),
    last: own === runs ? { from: 1, length: 0 } : ofRun(runs),
    high: { from: (1 + groups) * HASH_BYTES, length: runs * HASH_BYTES },
  };
}

/** Bytes of the stored hashes in the {@link KeptRanges} of a leaf. */
export type KeptParts = Readonly<Record<keyof KeptRanges, Buffer>>;

/** Returns the cached value with a name, or creates and caches it. */
export type Remember = (name: string, make: () => Subtrees) => Subtrees;

/**
 * @param place index of the leaf in the block, from 0
 * @param leaves returns the hashes of leaves in a range, whose end is exclusive
 * @param remember cache for other paths in the same block; only the name identifies a value
 * @throws RangeError if there is no such leaf, or the stored hashes don't belong to a tree of this size
 */
export function blockPath(
  place: number,
  count: number,
  kept: KeptParts,
  leaves: (from: number, to: number) => Hashes,
  remember: Remember,
): Buffer[] {
  for (const [name, { length }] of Object.entries(keptFor(place, count)))
    if (kept[name as keyof KeptParts].length !== length)
      throw new RangeError(`The stored hashes do not belong to a tree of ${count} leaves`);
  const ownRun = Math.floor(place / HIGH.leaves);
  const read: ReadHash = (level, index) => {
    const first = index * 2 ** level;
    if (level < LOW.level) {
      const group = Math.floor(first / LOW.leaves);
      const from = group * LOW.leaves;
      const found = remember(
        `group ${group}`,
        () => new Subtrees(leaves(from, Math.min(count, from + LOW.leaves))),
      );
      return found.read(level, index - from / 2 ** level);
    }
    if (level >= HIGH.level)
      return remember('high', () => new Subtrees(kept.high)).read(level - HIGH.level, index);
    const run = Math.floor(first / HIGH.leaves);
    const found = remember(`run ${run}`, () => new Subtrees(run === ownRun ? kept.own : kept.last));
    return found.read(level - LOW.level, index - (run * HIGH.leaves) / 2 ** level);
  };
  return inclusionPath(place, count, read);
}
