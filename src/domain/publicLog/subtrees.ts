/** Hashes one after the other, and those of the complete subtrees over them. */
import { hash } from 'node:crypto';
import { HASH_BYTES, type ReadHash } from './tree.js';

/** Hashes one after the other, 32 bytes each. */
export type Hashes = Buffer;

export const newHashes = (count: number): Hashes => Buffer.allocUnsafe(count * HASH_BYTES);

/** Writes the SHA-256 of some bytes as hash `at`. A digest as text of one byte a character costs a third of one as a buffer. */
export function writeHash(hashes: Hashes, at: number, bytes: Uint8Array): void {
  const digest = hash('sha256', bytes, 'binary');
  const from = at * HASH_BYTES;
  for (let i = 0; i < HASH_BYTES; i++) hashes[from + i] = digest.charCodeAt(i);
}

/** Hashes pairs of nodes: pair n becomes hash n, which may stand in the same place. */
export function hashPairs(hashes: Hashes, pairs: number, to: Hashes = hashes): void {
  const node = Buffer.alloc(1 + 2 * HASH_BYTES, 1);
  for (let pair = 0; pair < pairs; pair++) {
    hashes.copy(node, 1, 2 * pair * HASH_BYTES, 2 * (pair + 1) * HASH_BYTES);
    writeHash(to, pair, node);
  }
}

/** The hashes of all complete subtrees over some leaves, 2^level of them each. */
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

  /** @throws RangeError where the subtree is not complete */
  readonly read: ReadHash = (level, index) => {
    const hashes = this.#levels[level]?.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
    if (hashes?.length !== HASH_BYTES)
      throw new RangeError(`The subtree ${index} of level ${level} is not complete`);
    return hashes;
  };
}
