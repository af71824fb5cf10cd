/**
 * Filter of request ids. It says that an id may be in the set, or that it certainly is not. It is a split
 * block Bloom filter (Apache Parquet, "Bloom Filter"): each id has 8 bits within 32 bytes, so a lookup
 * touches one cache line.
 */

import { PAIR_WORDS } from './requestPairs.js';

/** Odd numbers that spread an id over the 8 words of its block, as the Parquet format defines them. */
const SALTS = [
  0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
] as const;
const BLOCK_WORDS_LOG2 = 3;
const BLOCK_WORDS = 2 ** BLOCK_WORDS_LOG2;
const BLOCK_BYTES = BLOCK_WORDS * 4;
const BLOCK_BITS = BLOCK_BYTES * 8;
/**
 * Bits per id, with a false positive rate of about one in a thousand. A small run, which needs little memory,
 * has a far lower rate.
 */
const BITS_AN_ID = 16;
const BITS_AN_ID_SMALL = 24;
const SMALL_IDS_MAX = 1_000_000;
const HASHES = 2 ** 32;

export function filterBytes(ids: number): number {
  const bits = ids <= SMALL_IDS_MAX ? BITS_AN_ID_SMALL : BITS_AN_ID;
  return Math.max(1, Math.ceil((ids * bits) / BLOCK_BITS)) * BLOCK_BYTES;
}

/** Returns the size of a filter, in bytes, after it was halved `folds` times. */
export const foldedBytes = (bytes: number, folds: number): number =>
  Math.ceil(bytes / BLOCK_BYTES / 2 ** folds) * BLOCK_BYTES;

export class RequestFilter {
  #words: Uint32Array;
  /** Number of 32-byte blocks of the filter before it was folded. */
  readonly #blocks: number;
  #folds: number;

  /**
   * @param bytes size of the filter before folding
   * @param folds see {@link folds}
   */
  constructor(bytes: number, folds = 0) {
    this.#words = new Uint32Array(foldedBytes(bytes, folds) / 4);
    this.#blocks = bytes / BLOCK_BYTES;
    this.#folds = folds;
  }

  static ofIds(ids: number): RequestFilter {
    return new RequestFilter(filterBytes(ids));
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#words.buffer as ArrayBuffer);
  }

  /** Number of times the filter was halved. A lookup ignores this many bits of a block's position. */
  get folds(): number {
    return this.#folds;
  }

  /**
   * Merges bytes of a second filter of the same ids, which was never folded.
   * @param at offset of the bytes in that filter, a multiple of 4
   */
  take(at: number, bytes: Buffer): void {
    if (this.#folds === 0) new Uint8Array(this.#words.buffer).set(bytes, at);
    // The bytes are copied because their offset in memory may not be a multiple of 4.
    else this.#takeWords(new Uint32Array(new Uint8Array(bytes).buffer), at / 4, this.#folds);
  }

  /**
   * Halves the filter. It keeps all its ids but has more false positives. A filter that was folded often
   * accepts every id.
   */
  fold(): void {
    const words = this.#words;
    this.#words = new Uint32Array(foldedBytes(words.length * 4, 1) / 4);
    this.#folds++;
    this.#takeWords(words, 0, 1);
  }

  #takeWords(from: Uint32Array, at: number, folds: number): void {
    const words = this.#words;
    for (let i = 0; i < from.length; i++) {
      const place = at + i;
      const block = (place >>> BLOCK_WORDS_LOG2) >>> folds;
      words[block * BLOCK_WORDS + (place & (BLOCK_WORDS - 1))]! |= from[i]!;
    }
  }

  /**
   * Adds (hash, id) pairs to an unfolded filter.
   * @param pairs words of pairs (domain/requestPairs.ts), each beginning with the hash of its id
   */
  addPairs(pairs: Uint32Array): void {
    const words = this.#words;
    const blocks = this.#blocks;
    for (let i = 0; i < pairs.length; i += PAIR_WORDS) {
      const at = Math.floor((pairs[i]! * blocks) / HASHES) * BLOCK_WORDS;
      const low = pairs[i + 1]!;
      words[at]! |= 1 << (Math.imul(low, SALTS[0]) >>> 27);
      words[at + 1]! |= 1 << (Math.imul(low, SALTS[1]) >>> 27);
      words[at + 2]! |= 1 << (Math.imul(low, SALTS[2]) >>> 27);
      words[at + 3]! |= 1 << (Math.imul(low, SALTS[3]) >>> 27);
      words[at + 4]! |= 1 << (Math.imul(low, SALTS[4]) >>> 27);
      words[at + 5]! |= 1 << (Math.imul(low, SALTS[5]) >>> 27);
      words[at + 6]! |= 1 << (Math.imul(low, SALTS[6]) >>> 27);
      words[at + 7]! |= 1 << (Math.imul(low, SALTS[7]) >>> 27);
    }
  }

  /**
   * Returns whether the id may have been added.
   * @param high first 32 bits of its hash
   * @param low next 32 bits, both unsigned
   */
  mayHave(high: number, low: number): boolean {
    const at = (Math.floor((high * this.#blocks) / HASHES) >>> this.#folds) * BLOCK_WORDS;
    for (let i = 0; i < BLOCK_WORDS; i++) {
      if (((this.#words[at + i]! >>> (Math.imul(low, SALTS[i]!) >>> 27)) & 1) === 0) return false;
    }
    return true;
  }
}
