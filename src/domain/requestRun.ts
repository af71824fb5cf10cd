/**
 * A run: request ids that were written together, sorted by the hash of partner and requestId, in blocks of up
 * to a few hundred. A block is found by its first hash, and an id within it by binary search.
 *
 *   block   pairs, ascending: first 8 bytes of the hash (big endian), id of the ledger entry u64 (big endian)
 */
import { RequestFilter } from './requestFilter.js';
import { PAIR_BYTES, PAIR_WORDS } from './requestPairs.js';

export const REQUEST_HASH_BYTES = 8;
/** Pairs per block. A row with a block stays below 2 KB, so that Postgres stores it in one piece. */
export const PAIRS_A_BLOCK = 110;

export interface RequestBlock {
  /**
   * First hash of the block. It is zero for the first block of a run, so that every hash has a block that
   * begins at or before it.
   */
  readonly firstHash: Buffer;
  readonly pairs: Buffer;
}

/** Builds the filter and the blocks of a run from sorted pairs. */
export class RunWriter {
  readonly filter: RequestFilter;
  #isFirst = true;

  /** @param onBlock receives each block; the writer uses its bytes again afterwards */
  constructor(
    ids: number,
    private readonly onBlock: (block: RequestBlock) => void,
  ) {
    this.filter = RequestFilter.ofIds(ids);
  }

  /**
   * Adds (hash, id) pairs to the filter and the blocks, and converts their words in place to the byte order
   * of the blocks. Pairs with equal hashes must be added in one call.
   * @param words words of sorted pairs (domain/requestPairs.ts)
   */
  add(words: Uint32Array): void {
    const { length } = words;
    this.filter.addPairs(words);
    const bytes = Buffer.from(words.buffer, words.byteOffset, words.byteLength).swap32();
    for (let begin = 0; begin < length; ) {
      let end = Math.min(length, begin + PAIRS_A_BLOCK * PAIR_WORDS);
      // Pairs with equal hashes stay in one block.
      while (end < length && words[end] === words[end - 4] && words[end + 1] === words[end - 3])
        end += PAIR_WORDS;
      const pairs = bytes.subarray(begin * 4, end * 4);
      this.onBlock({
        firstHash: this.#isFirst ? Buffer.alloc(REQUEST_HASH_BYTES) : pairs.subarray(0, REQUEST_HASH_BYTES),
        pairs,
      });
      this.#isFirst = false;
      begin = end;
    }
  }
}

/**
 * Returns the ids of the ledger entries with a hash in a block, ascending.
 * @param hash at least 8 bytes
 */
export function findInBlock(pairs: Buffer, hash: Buffer): bigint[] {
  const compare = (place: number): number =>
    pairs.compare(hash, 0, REQUEST_HASH_BYTES, place * PAIR_BYTES, place * PAIR_BYTES + REQUEST_HASH_BYTES);
  const count = pairs.length / PAIR_BYTES;
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(middle) < 0) low = middle + 1;
    else high = middle;
  }
  const found: bigint[] = [];
  for (let place = low; place < count && compare(place) === 0; place++)
    found.push(pairs.readBigUInt64BE(place * PAIR_BYTES + REQUEST_HASH_BYTES));
  return found;
}
