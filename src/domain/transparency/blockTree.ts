/**
 * The tree over a sealed block's leaves. Kept with the block: its root, and the hashes of each full 256 and 65,536 leaves, one
 * after the other (a sixteenth of the outcomes' bytes). The rest is computed again where a path is asked for.
 */
import { hash } from 'node:crypto';
import { shoeLeafData } from './leaves.js';
import { HASH_BYTES, inclusionPath, leafHash, MemoryTree, nodeHash, type ReadHash } from './tree.js';

/** Leaves of a group whose hash is kept, by level. */
const LOW = { level: 8, leaves: 2 ** 8 };
const HIGH = { level: 16, leaves: 2 ** 16 };

/** Leaves whose hashes a path needs at a time: of a leaf's own group, and of the last one, which may not be full. */
export const GROUP_LEAVES = LOW.leaves;

const NONCE_BYTES = 32;
const NONCES_AT_ONCE = 4096;
/** 0x00, the leaf's name, game, index, code, nonce: with its padding one block of SHA-256. */
const LEAF_AT = { index: 13, code: 21, nonce: 23 };

/** Codes of a block, and what gives each leaf its nonce (leaves.ts). */
export interface BlockOfOutcomes {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly codes: Uint16Array;
  /** The nonces of the block's outcomes from `first` on, 32 bytes each. */
  readonly nonces: (first: number, count: number) => Buffer;
}

/**
 * The hashes of a block's leaves, one after the other. The digest comes as text of one byte a character: half the time of one
 * that comes as a buffer of its own.
 */
export function outcomeLeaves(
  { gameId, fromIndex, codes, nonces }: BlockOfOutcomes,
  from = 0,
  to = codes.length,
): Buffer {
  const hashes = Buffer.allocUnsafeSlow((to - from) * HASH_BYTES);
  const leaf = Buffer.alloc(LEAF_AT.nonce + NONCE_BYTES);
  leaf.write('SPDLout1', 1, 'latin1');
  leaf.writeUInt32BE(gameId, 9);
  let nonce: Buffer = Buffer.alloc(0);
  let nonceAt = 0;
  for (let i = from; i < to; i++) {
    if (nonceAt === nonce.length) {
      nonce = nonces(i, Math.min(NONCES_AT_ONCE, to - i));
      nonceAt = 0;
    }
    const index = fromIndex + i;
    leaf.writeUInt32BE(Math.floor(index / 2 ** 32), LEAF_AT.index);
    leaf.writeUInt32BE(index % 2 ** 32, LEAF_AT.index + 4);
    leaf.writeUInt16BE(codes[i]!, LEAF_AT.code);
    nonce.copy(leaf, LEAF_AT.nonce, nonceAt, nonceAt + NONCE_BYTES);
    nonceAt += NONCE_BYTES;
    hashes.write(hash('sha256', leaf, 'binary'), (i - from) * HASH_BYTES, HASH_BYTES, 'latin1');
  }
  return hashes;
}

/** The hashes of shoes' leaves, one after the other. @param commitments the shoes', 32 bytes each */
export const shoeLeaves = (gameId: number, fromIndex: number, commitments: readonly Buffer[]): Buffer =>
  Buffer.concat(
    commitments.map((commitment, i) => leafHash(shoeLeafData({ gameId, index: fromIndex + i }, commitment))),
  );

/** What is kept of the tree over leaves: root, hashes of 256, hashes of 65,536. @param leaves their hashes; overwritten */
export function sealTree(leaves: Buffer): Uint8Array {
  const kept: Buffer[] = [];
  const node = Buffer.alloc(1 + 2 * HASH_BYTES);
  node[0] = 1;
  let width = leaves.length / HASH_BYTES;
  const all = width;
  for (let level = 1; width > 1; level++) {
    const pairs = Math.floor(width / 2);
    for (let at = 0; at < pairs; at++) {
      leaves.copy(node, 1, 2 * at * HASH_BYTES, (2 * at + 2) * HASH_BYTES);
      leaves.write(hash('sha256', node, 'binary'), at * HASH_BYTES, HASH_BYTES, 'latin1');
    }
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
  leaves: (from: number, to: number) => Buffer,
): Buffer[] {
  if (tree.length !== treeBytes(count)) throw new RangeError(`The tree is not one of ${count} leaves`);
  const kept = Buffer.from(tree.buffer, tree.byteOffset, tree.byteLength);
  const low = kept.subarray(HASH_BYTES, (1 + Math.floor(count / LOW.leaves)) * HASH_BYTES);
  const high = kept.subarray(HASH_BYTES + low.length);
  const groups = new Map<number, MemoryTree>();
  const groupOf = (group: number): MemoryTree => {
    let found = groups.get(group);
    if (found === undefined) {
      const bytes = leaves(group * LOW.leaves, Math.min(count, (group + 1) * LOW.leaves));
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
