/**
 * The tree over a sealed block's leaves. Kept with the block: its root, and the hashes of each full 256 and 65,536 leaves, one
 * after the other (a sixteenth of the outcomes' bytes). The rest is computed again where a path is asked for.
 */
import { shoeLeafData } from './leaves.js';
import { blocks, digests, hashFour } from './sha256x4.js';
import { HASH_BYTES, inclusionPath, leafHash, MemoryTree, nodeHash, type ReadHash } from './tree.js';

/** Leaves of a group whose hash is kept, by level. */
const LOW = { level: 8, leaves: 2 ** 8 };
const HIGH = { level: 16, leaves: 2 ** 16 };
/** Leaves whose hashes a path needs at a time: of a leaf's own group, and of the last one, which may not be full. */
export const GROUP_LEAVES = LOW.leaves;

const LANES = 4;
const WORDS = HASH_BYTES / 4;
const NONCE_BYTES = 32;
const NONCES_AT_ONCE = 4096;
const TWO_32 = 2 ** 32;

/** Hashes one after the other, as words: 8 numbers of 32 bits each. */
export type Hashes = Int32Array;

const newHashes = (count: number): Hashes => new Int32Array(count * WORDS);

/** The bytes of some hashes. */
function bytesOf(hashes: Hashes): Buffer {
  const bytes = Buffer.alloc(hashes.length * 4);
  for (let at = 0; at < hashes.length; at++) bytes.writeInt32BE(hashes[at]!, 4 * at);
  return bytes;
}

/** Takes the digests of so many lanes. @param at hash from which on they stand in `hashes` */
function takeDigests(hashes: Hashes, at: number, lanes: number): void {
  for (let lane = 0; lane < lanes; lane++) {
    const to = (at + lane) * WORDS;
    for (let word = 0; word < WORDS; word++) hashes[to + word] = digests[word * LANES + lane]!;
  }
}

/** Codes of a block, and what gives each leaf its nonce (leaves.ts). */
export interface BlockOfOutcomes {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly codes: Uint16Array;
  /** The nonces of the block's outcomes from `first` on, 32 bytes each. */
  readonly nonces: (first: number, count: number) => Buffer;
}

/** The first words of every leaf: 0x00, `SPDLout1`; and its padding, for 55 bytes. */
const LEAF_HEAD = [0x00535044, 0x4c6f7574];
const LEAF_BITS = 55 * 8;

/** The hashes of a block's leaves. Each is one block of SHA-256: 0x00, the name, game, index, code, nonce. */
export function outcomeLeaves(
  { gameId, fromIndex, codes, nonces }: BlockOfOutcomes,
  from = 0,
  to = codes.length,
): Hashes {
  const hashes = newHashes(to - from);
  const game = [0x31000000 | (gameId >>> 8), (gameId & 0xff) << 24] as const;
  for (let first = from; first < to; first += NONCES_AT_ONCE) {
    const end = Math.min(to, first + NONCES_AT_ONCE);
    const bytes = nonces(first, end - first);
    const nonce = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    fillEvery(14, 0);
    fillEvery(15, LEAF_BITS);
    for (let i = first; i < end; i += LANES) {
      const lanes = Math.min(LANES, end - i);
      for (let lane = 0; lane < lanes; lane++) {
        const index = fromIndex + i + lane;
        const high = Math.floor(index / TWO_32);
        const at = (i + lane - first) * NONCE_BYTES;
        blocks[lane] = LEAF_HEAD[0]!;
        blocks[LANES + lane] = LEAF_HEAD[1]!;
        blocks[2 * LANES + lane] = game[0];
        blocks[3 * LANES + lane] = game[1] | (high >>> 8);
        blocks[4 * LANES + lane] = ((high & 0xff) << 24) | ((index % TWO_32) >>> 8);
        blocks[5 * LANES + lane] = ((index % TWO_32) << 24) | (codes[i + lane]! << 8) | nonce.getUint8(at);
        for (let word = 0; word < 7; word++) {
          blocks[(6 + word) * LANES + lane] = nonce.getInt32(at + 1 + 4 * word);
        }
        blocks[13 * LANES + lane] = (nonce.getInt32(at + 28) << 8) | 0x80;
      }
      hashFour(1);
      takeDigests(hashes, i - from, lanes);
    }
  }
  return hashes;
}

/** Puts one number into a word of all lanes. */
const fillEvery = (word: number, value: number): void => {
  blocks.fill(value, word * LANES, (word + 1) * LANES);
};

/** The hashes of shoes' leaves. @param commitments the shoes', 32 bytes each */
export function shoeLeaves(gameId: number, fromIndex: number, commitments: readonly Buffer[]): Hashes {
  const hashes = newHashes(commitments.length);
  for (const [i, commitment] of commitments.entries()) {
    const hash = leafHash(shoeLeafData({ gameId, index: fromIndex + i }, commitment));
    for (let word = 0; word < WORDS; word++) hashes[i * WORDS + word] = hash.readInt32BE(4 * word);
  }
  return hashes;
}

/** 0x01 and two hashes: 65 bytes, so that each word takes its first byte from the word before. */
const NODE_BITS = 65 * 8;

/** Hashes pairs of nodes into their places: pair n becomes hash n. */
function hashPairs(hashes: Hashes, pairs: number): void {
  for (let word = 17; word < 32; word++) fillEvery(word, 0);
  fillEvery(31, NODE_BITS);
  for (let pair = 0; pair < pairs; pair += LANES) {
    const lanes = Math.min(LANES, pairs - pair);
    for (let lane = 0; lane < lanes; lane++) {
      const at = 2 * (pair + lane) * WORDS;
      let before = 1;
      for (let word = 0; word < 2 * WORDS; word++) {
        const value = hashes[at + word]!;
        blocks[word * LANES + lane] = (before << 24) | (value >>> 8);
        before = value;
      }
      blocks[16 * LANES + lane] = (before << 24) | 0x800000;
    }
    hashFour(2);
    takeDigests(hashes, pair, lanes);
  }
}

/** What is kept of the tree over leaves: root, hashes of 256, hashes of 65,536. @param leaves their hashes; overwritten */
export function sealTree(leaves: Hashes): Uint8Array {
  const kept: Buffer[] = [];
  const all = leaves.length / WORDS;
  let width = all;
  for (let level = 1; width > 1; level++) {
    const pairs = Math.floor(width / 2);
    hashPairs(leaves, pairs);
    // One without a partner stands for its subtree on the next level, too.
    if (width % 2 === 1) leaves.copyWithin(pairs * WORDS, (width - 1) * WORDS, width * WORDS);
    width = Math.ceil(width / 2);
    if (level === LOW.level || level === HIGH.level) {
      kept.push(bytesOf(leaves.subarray(0, Math.floor(all / 2 ** level) * WORDS)));
    }
  }
  return Uint8Array.from(Buffer.concat([bytesOf(leaves.subarray(0, WORDS)), ...kept]));
}

/** The root of what {@link sealTree} keeps. */
export const rootOfTree = (tree: Uint8Array): Buffer => Buffer.from(tree.subarray(0, HASH_BYTES));

/** How many bytes {@link sealTree} keeps of so many leaves. */
const treeBytes = (count: number): number =>
  (1 + Math.floor(count / LOW.leaves) + Math.floor(count / HIGH.leaves)) * HASH_BYTES;

/**
 * The path of a leaf in a block's tree.
 * @param place of the leaf in the block, from 0
 * @param tree as {@link sealTree} keeps it
 * @param leaves gives the hashes of leaves from one place up to and without another
 * @throws RangeError where there is no such leaf, or the tree is not of so many leaves
 */
export function blockPath(
  place: number,
  count: number,
  tree: Uint8Array,
  leaves: (from: number, to: number) => Hashes,
): Buffer[] {
  if (tree.length !== treeBytes(count)) throw new RangeError(`The tree is not one of ${count} leaves`);
  const kept = Buffer.from(tree.buffer, tree.byteOffset, tree.byteLength);
  const low = kept.subarray(HASH_BYTES, (1 + Math.floor(count / LOW.leaves)) * HASH_BYTES);
  const high = kept.subarray(HASH_BYTES + low.length);
  const groups = new Map<number, MemoryTree>();
  const groupOf = (group: number): MemoryTree => {
    let found = groups.get(group);
    if (found === undefined) {
      const bytes = bytesOf(leaves(group * LOW.leaves, Math.min(count, (group + 1) * LOW.leaves)));
      const hashes = Array.from({ length: bytes.length / HASH_BYTES }, (_, at) => hashAt(bytes, at));
      found = new MemoryTree(hashes);
      groups.set(group, found);
    }
    return found;
  };
  const read: ReadHash = (level, index) => {
    if (level < LOW.level) {
      const group = Math.floor((index * 2 ** level) / LOW.leaves);
      return groupOf(group).read(level, index - group * 2 ** (LOW.level - level));
    }
    return level < HIGH.level ? above(low, level - LOW.level, index) : above(high, level - HIGH.level, index);
  };
  return inclusionPath(place, count, read);
}

const hashAt = (hashes: Buffer, at: number): Buffer =>
  hashes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES);

/** The hash so many levels above hashes that are kept. */
function above(hashes: Buffer, levels: number, index: number): Buffer {
  if (levels === 0) return hashAt(hashes, index);
  return nodeHash(above(hashes, levels - 1, 2 * index), above(hashes, levels - 1, 2 * index + 1));
}
