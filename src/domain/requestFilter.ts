/**
 * A filter of request ids: says of an id that it may be among those that it was made of, or that it is not. A split block Bloom
 * filter (Apache Parquet, "Bloom Filter"): an id has 8 bits in 32 bytes, so a look touches one line of the processor's cache.
 */

/** Odd numbers that spread an id over the 8 words of its block, as the format gives them. */
const SALTS = [
  0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
] as const;
const BLOCK_WORDS = 8;
const BLOCK_BITS = 256;
/** One id of a thousand that are not among them is taken for one; of a small run, which costs little memory, far fewer. */
const BITS_AN_ID = 16;
const BITS_AN_ID_SMALL = 24;
const SMALL_IDS_MAX = 1_000_000;
const HASHES = 2 ** 32;

/** Bytes of a filter of so many ids. */
export function filterBytes(ids: number): number {
  const bits = ids <= SMALL_IDS_MAX ? BITS_AN_ID_SMALL : BITS_AN_ID;
  return Math.max(1, Math.ceil((ids * bits) / BLOCK_BITS)) * BLOCK_WORDS * 4;
}

export class RequestFilter {
  readonly #words: Uint32Array;
  /** Before it was folded. */
  readonly #blocks: number;
  /** How often it was made half as large: so many bits of a block's place are left out. */
  readonly folds: number;

  /** @param bytes as {@link bytes} gave them; all zero: of no ids. Kept, not copied; begins at a multiple of 4. */
  constructor(bytes: Uint8Array, folded?: { readonly blocks: number; readonly folds: number }) {
    this.#words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    this.#blocks = folded?.blocks ?? this.#words.length / BLOCK_WORDS;
    this.folds = folded?.folds ?? 0;
  }

  static ofIds(ids: number): RequestFilter {
    return new RequestFilter(new Uint8Array(filterBytes(ids)));
  }

  get bytes(): Uint8Array {
    const { buffer, byteOffset, byteLength } = this.#words;
    return new Uint8Array(buffer, byteOffset, byteLength);
  }

  /**
   * The same in half the bytes: it has each id that this one has, and takes more others for its own. One that was folded often
   * takes every id for its own.
   */
  folded(): RequestFilter {
    const words = new Uint32Array(Math.ceil(this.#words.length / BLOCK_WORDS / 2) * BLOCK_WORDS);
    for (let i = 0; i < this.#words.length; i++) {
      const at = Math.floor(i / BLOCK_WORDS / 2) * BLOCK_WORDS + (i % BLOCK_WORDS);
      words[at]! |= this.#words[i]!;
    }
    return new RequestFilter(new Uint8Array(words.buffer), { blocks: this.#blocks, folds: this.folds + 1 });
  }

  /** Of one that was not folded. @param high first 32 bits of the id's hash @param low the next 32 bits, both unsigned */
  add(high: number, low: number): void {
    const at = Math.floor((high * this.#blocks) / HASHES) * BLOCK_WORDS;
    for (let i = 0; i < BLOCK_WORDS; i++) {
      this.#words[at + i]! |= 1 << (Math.imul(low, SALTS[i]!) >>> 27);
    }
  }

  /** The id may be one of those that were added. Parameters as of {@link add}. */
  mayHave(high: number, low: number): boolean {
    const at = (Math.floor((high * this.#blocks) / HASHES) >>> this.folds) * BLOCK_WORDS;
    for (let i = 0; i < BLOCK_WORDS; i++) {
      if (((this.#words[at + i]! >>> (Math.imul(low, SALTS[i]!) >>> 27)) & 1) === 0) return false;
    }
    return true;
  }
}
