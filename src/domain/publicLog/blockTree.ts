/**
 * The tree over a sealed block's leaves. Kept with the block: its root, and the hashes of each full 256 and 65,536 leaves, one
 * after the other (a sixteenth of the outcomes' bytes). The rest is computed again where a path is asked for.
 */
import { shoeLeafData } from './leaves.js';
import { type Hashes, hashPairs, newHashes, Subtrees, writeHash } from './subtrees.js';
import { HASH_BYTES, inclusionPath, leafHash, type ReadHash } from './tree.js';

/** Leaves of a group whose hash is kept, by level. */
const LOW = { level: 8, leaves: 2 ** 8 };
const HIGH = { level: 16, leaves: 2 ** 16 };
/** Leaves whose hashes a path needs at a time: of a leaf's own group, and of the last one, which may not be full. */
export const GROUP_LEAVES = LOW.leaves;

const NONCE_BYTES = 32;
const NONCES_AT_ONCE = 4096;
const TWO_32 = 2 ** 32;

/** Codes of a block, and what gives each leaf its nonce (leaves.ts). */
export interface BlockOfOutcomes {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly codes: Uint16Array;
  /** The nonces of the block's outcomes from `first` on, 32 bytes each. */
  readonly nonces: (first: number, count: number) => Buffer;
}

/** A leaf of an outcome (leaves.ts): 0x00, `SPDLout1`, game, index, code, nonce. */
const LEAF = { game: 9, index: 13, code: 21, nonce: 23, bytes: 55 };

/** The hashes of a block's leaves. */
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

/** The hashes of shoes' leaves. @param commitments the shoes', 32 bytes each */
export function shoeLeaves(gameId: number, fromIndex: number, commitments: readonly Buffer[]): Hashes {
  const hashes = newHashes(commitments.length);
  for (const [i, commitment] of commitments.entries()) {
    leafHash(shoeLeafData({ gameId, index: fromIndex + i }, commitment)).copy(hashes, i * HASH_BYTES);
  }
  return hashes;
}

/** What is kept of the tree over leaves: root, hashes of 256, hashes of 65,536. @param leaves their hashes; overwritten */
export function sealTree(leaves: Hashes): Uint8Array {
  const kept: Buffer[] = [];
  const all = leaves.length / HASH_BYTES;
  let width = all;
  for (let level = 1; width > 1; level++) {
    const pairs = Math.floor(width / 2);
    hashPairs(leaves, pairs);
    // One without a partner stands for its subtree on the next level, too.
    if (width % 2 === 1) leaves.copyWithin(pairs * HASH_BYTES, (width - 1) * HASH_BYTES, width * HASH_BYTES);
    width = Math.ceil(width / 2);
    if (level === LOW.level || level === HIGH.level) {
      kept.push(Buffer.from(leaves.subarray(0, Math.floor(all / 2 ** level) * HASH_BYTES)));
    }
  }
  return Uint8Array.from(Buffer.concat([leaves.subarray(0, HASH_BYTES), ...kept]));
}

/** The root of what {@link sealTree} keeps. */
export const rootOfTree = (tree: Uint8Array): Buffer => Buffer.from(tree.subarray(0, HASH_BYTES));

/** Bytes of what {@link sealTree} keeps. */
interface KeptRange {
  readonly from: number;
  readonly length: number;
}

/** Which of the kept hashes a path needs: those of 256 leaves in the leaf's own 65,536 and in the last ones, and all of 65,536. */
export interface KeptRanges {
  readonly own: KeptRange;
  readonly last: KeptRange;
  readonly high: KeptRange;
}

const RUN_GROUPS = HIGH.leaves / LOW.leaves;

/** @param place of the leaf in the block, from 0. @param count leaves of the block */
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

/** The bytes of the {@link KeptRanges} of a leaf. */
export type KeptParts = Readonly<Record<keyof KeptRanges, Buffer>>;

/** Gives what is known under a name, or makes it. */
export type Remember = (name: string, make: () => Subtrees) => Subtrees;

/**
 * The path of a leaf in a block's tree.
 * @param place of the leaf in the block, from 0
 * @param leaves gives the hashes of leaves from one place up to and without another
 * @param remember what was made for other paths in the same block; names are told apart by nothing else
 * @throws RangeError where there is no such leaf, or the kept hashes are not those of so many leaves
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
      throw new RangeError(`The tree is not one of ${count} leaves`);
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
