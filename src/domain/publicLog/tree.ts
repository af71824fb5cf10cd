/**
 * Merkle trees of RFC 6962 section 2.1 over SHA-256, with inclusion and consistency proofs in the order of
 * RFC 9162 section 2.1. Proofs are made from any store of the hashes of complete subtrees. Sizes go up to
 * 2^53 - 1.
 */
import { hash } from 'node:crypto';

export const HASH_BYTES = 32;
const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);

/**
 * Computes SHA-256 over the concatenated parts. A digest as a string with one byte per character takes half
 * the time of a digest as a buffer.
 */
export const sha256 = (...parts: readonly (Buffer | string)[]): Buffer => {
  const bytes = parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part));
  return Buffer.from(hash('sha256', Buffer.concat(bytes), 'binary'), 'latin1');
};

export const leafHash = (data: Buffer): Buffer => sha256(LEAF, data);
export const nodeHash = (left: Buffer, right: Buffer): Buffer => sha256(NODE, left, right);
/** Root of the Merkle tree without leaves. */
export const EMPTY_ROOT = sha256();

/** Range of a tree's leaves; `to` is exclusive. */
type Range = readonly [from: number, to: number];
/** Returns the hash over the 2^level leaves from index × 2^level on, all of which must exist. */
export type ReadHash = (level: number, index: number) => Buffer;

/** Returns the largest power of two below a size of at least 2. */
function split(size: number): number {
  let power = 1;
  while (power * 2 < size) power *= 2;
  return power;
}

/** Splits a range of the tree into complete subtrees, from left to right. */
function subtreesOf([from, to]: Range): { level: number; index: number }[] {
  const found: { level: number; index: number }[] = [];
  for (let at = from; at < to; ) {
    let level = 0;
    let width = 1;
    while (at % (width * 2) === 0 && at + width * 2 <= to) {
      width *= 2;
      level++;
    }
    found.push({ level, index: at / width });
    at += width;
  }
  return found;
}

function rangeHash(range: Range, read: ReadHash): Buffer {
  const hashes = subtreesOf(range).map(({ level, index }) => read(level, index));
  return hashes.length === 0 ? EMPTY_ROOT : hashes.reduceRight((right, left) => nodeHash(left, right));
}

/** Returns the root over the first `size` leaves. */
export const rootOf = (size: number, read: ReadHash): Buffer => rangeHash([0, size], read);

/**
 * Returns the ranges whose hashes prove the inclusion of a leaf, the leaf's sibling first.
 * @throws RangeError if there is no such leaf
 */
function inclusionRanges(index: number, size: number): Range[] {
  if (!(index >= 0 && index < size)) throw new RangeError(`A tree of ${size} leaves has no leaf ${index}`);
  const ranges: Range[] = [];
  for (let from = 0, to = size; to - from > 1; ) {
    const middle = from + split(to - from);
    if (index < middle) {
      ranges.unshift([middle, to]);
      to = middle;
    } else {
      ranges.unshift([from, middle]);
      from = middle;
    }
  }
  return ranges;
}

/**
 * Returns the ranges whose hashes prove that a tree contains a smaller tree.
 * @throws RangeError unless 0 < old ≤ size
 */
function consistencyRanges(old: number, size: number): Range[] {
  if (!(old > 0 && old <= size))
    throw new RangeError(`A tree of ${size} leaves does not contain a tree of ${old} leaves`);
  const ranges: Range[] = [];
  let from = 0;
  let to = size;
  while (old < to) {
    const middle = from + split(to - from);
    if (old <= middle) {
      ranges.unshift([middle, to]);
      to = middle;
    } else {
      ranges.unshift([from, middle]);
      from = middle;
    }
  }
  // The remaining range ends where the old tree ends. If it starts at 0, it is the old tree itself, whose
  // hash the verifier already has.
  return from === 0 ? ranges : [[from, to], ...ranges];
}

export const inclusionPath = (index: number, size: number, read: ReadHash): Buffer[] =>
  inclusionRanges(index, size).map((range) => rangeHash(range, read));

export const consistencyPath = (old: number, size: number, read: ReadHash): Buffer[] =>
  consistencyRanges(old, size).map((range) => rangeHash(range, read));

/** @returns undefined if the path has the wrong length */
export function rootByInclusion(
  index: number,
  size: number,
  leaf: Buffer,
  path: readonly Buffer[],
): Buffer | undefined {
  if (!(index >= 0 && index < size)) return undefined;
  const ranges = inclusionRanges(index, size);
  if (ranges.length !== path.length) return undefined;
  return path.reduce(
    (hash, other, at) => (ranges[at]![0] > index ? nodeHash(hash, other) : nodeHash(other, hash)),
    leaf,
  );
}

interface Tree {
  readonly size: number;
  readonly root: Buffer;
}

/**
 * Returns whether a path proves that a tree contains an older tree with at least one leaf. For trees of equal
 * size, the roots must be equal and the path must be empty.
 */
export function isConsistent(old: Tree, tree: Tree, path: readonly Buffer[]): boolean {
  if (!(old.size > 0 && old.size <= tree.size)) return false;
  const ranges = consistencyRanges(old.size, tree.size);
  if (ranges.length !== path.length) return false;
  const begun = ranges[0]?.[1] === old.size;
  const first = begun ? path[0]! : old.root;
  let older = first;
  let newer = first;
  for (let at = begun ? 1 : 0; at < path.length; at++) {
    const hash = path[at]!;
    if (ranges[at]![0] >= old.size) newer = nodeHash(newer, hash);
    else {
      older = nodeHash(hash, older);
      newer = nodeHash(hash, newer);
    }
  }
  return older.equals(old.root) && newer.equals(tree.root);
}

/** Hashes of all complete subtrees of a tree, in memory, for one sealed block or a small log. */
export class MemoryTree {
  readonly #levels: Buffer[][] = [];

  constructor(leaves: Iterable<Buffer> = []) {
    for (const leaf of leaves) this.append(leaf);
  }

  get size(): number {
    return this.#levels[0]?.length ?? 0;
  }

  /** @param leaf hash of the leaf */
  append(leaf: Buffer): void {
    let hash = leaf;
    for (let level = 0; ; level++) {
      this.#levels[level] ??= [];
      const hashes = this.#levels[level]!;
      hashes.push(hash);
      if (hashes.length % 2 === 1) return;
      hash = nodeHash(hashes.at(-2)!, hash);
    }
  }

  /** Returns the hash of a subtree. */
  readonly read: ReadHash = (level, index) => {
    const hash = this.#levels[level]?.[index];
    if (hash === undefined) throw new RangeError(`The subtree ${index} of level ${level} is not complete`);
    return hash;
  };

  /**
   * Returns the root of the tree over the first leaves.
   * @param size number of first leaves to include; the default is all
   */
  root(size = this.size): Buffer {
    return rootOf(size, this.read);
  }
}
