/** Hashes as words, and those of the complete subtrees over them: four at a time (sha256x4.ts), where a tree is made of many at once. */
import { blocks, digests, hashFour } from './sha256x4.js';
import { HASH_BYTES, type ReadHash } from './tree.js';

export const LANES = 4;
export const WORDS = HASH_BYTES / 4;

/** Hashes one after the other, as words: 8 numbers of 32 bits each. */
export type Hashes = Int32Array;

export const newHashes = (count: number): Hashes => new Int32Array(count * WORDS);

/** The bytes of some hashes. */
export function bytesOf(hashes: Hashes): Buffer {
  const bytes = Buffer.allocUnsafe(hashes.length * 4);
  for (let at = 0; at < hashes.length; at++) bytes.writeInt32BE(hashes[at]!, 4 * at);
  return bytes;
}

/** Some hashes of their bytes. */
export function wordsOf(bytes: Buffer): Hashes {
  const hashes = new Int32Array(bytes.length / 4);
  for (let at = 0; at < hashes.length; at++) hashes[at] = bytes.readInt32BE(4 * at);
  return hashes;
}

/** Takes the digests of so many lanes. @param at hash from which on they stand in `hashes` */
export function takeDigests(hashes: Hashes, at: number, lanes: number): void {
  for (let lane = 0; lane < lanes; lane++) {
    const to = (at + lane) * WORDS;
    for (let word = 0; word < WORDS; word++) hashes[to + word] = digests[word * LANES + lane]!;
  }
}

/** Puts one number into a word of all lanes. */
export const fillEvery = (word: number, value: number): void => {
  blocks.fill(value, word * LANES, (word + 1) * LANES);
};

/** 0x01 and two hashes: 65 bytes, so that each word takes its first byte from the word before. */
const NODE_BITS = 65 * 8;

/** Hashes pairs of nodes: pair n becomes hash n, which may stand in the same place. */
export function hashPairs(hashes: Hashes, pairs: number, to: Hashes = hashes): void {
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
    takeDigests(to, pair, lanes);
  }
}

/** The hashes of all complete subtrees over some leaves, 2^level of them each. */
export class Subtrees {
  readonly #levels: Hashes[];

  constructor(leaves: Hashes) {
    this.#levels = [leaves];
    for (let width = leaves.length / WORDS; width > 1; ) {
      const pairs = Math.floor(width / 2);
      const above = newHashes(pairs);
      hashPairs(this.#levels.at(-1)!, pairs, above);
      this.#levels.push(above);
      width = pairs;
    }
  }

  /** @throws RangeError where the subtree is not complete */
  readonly read: ReadHash = (level, index) => {
    const hashes = this.#levels[level]?.subarray(index * WORDS, (index + 1) * WORDS);
    if (hashes?.length !== WORDS)
      throw new RangeError(`The subtree ${index} of level ${level} is not complete`);
    return bytesOf(hashes);
  };
}
