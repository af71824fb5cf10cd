/** Packed lists of hashes, and the hashes of the complete subtrees over them. */
import { hash } from 'node:crypto';
import { HASH_BYTES, type ReadHash } from './tree.js';

/** List of hashes in one buffer, 32 bytes each. */
export type Hashes = Buffer;

export const newHashes = (count: number): Hashes => Buffer.allocUnsafe(count * HASH_BYTES);

/**
 * Writes the SHA-256 of bytes into a list of hashes, at index `at`. A digest as a string with one byte per
 * character costs a third of a digest as a buffer.
 */
export function writeHash(hashes: Hashes, at: number, bytes: Uint8Array): void {
  const digest = hash('sha256', bytes, 'binary');
  const from = at * HASH_BYTES;
  for (let i = 0; i < HASH_BYTES; i++) hashes[from + i] = digest.charCodeAt(i);
}

/**
 * Hashes pairs of neighbouring nodes: the hash of pair n becomes element n of the result. The result may
 * overwrite the input.
 */
export function hashPairs(hashes: Hashes, pairs: number, to: Hashes = hashes): void {
  const node = Buffer.alloc(1 + 2 * HASH_BYTES, 1);
  for (let pair = 0; pair < pairs; pair++) {
    hashes.copy(node, 1, 2 * pair * HASH_BYTES, 2 * (pair + 1) * HASH_BYTES);
    writeHash(to, pair, node);
  }
}

/** Hashes of all complete subtrees over a list of leaves, each over 2^level leaves. */
export class Subtrees {
  readonly #levels: Hashes[];

  constructor(leaves: Hashes) {
    this.#levels = [leaves];
    for (let width = leaves.length / HASH_BYTES; width > 1; ) {
      const pairs = Math.floor(width / 2);
      const above = newHashes(pairs);
      hashPairs(this.#levels.at(-1)!, pairs, above);
      this.#levels.push(above);
      width = pairs;
    }
  }

  readonly read: ReadHash = (level, index) => {
    const hashes = this.#levels[level]?.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
    if (hashes?.length !== HASH_BYTES)
      throw new RangeError(`The subtree ${index} of level ${level} is not complete`);
    return hashes;
  };
}
