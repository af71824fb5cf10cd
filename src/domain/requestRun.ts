/**
 * A run: request ids that were written together, sorted by the hash of partner and requestId, in blocks of a few hundred.
 * A block is found by its first hash, an id in it by binary search.
 *
 *   block   pairs, ascending: first 8 bytes of the hash (big endian), id of the ledger entry u64 (big endian)
 */
import { RequestFilter } from './requestFilter.js';
import { PAIR_BYTES, PAIR_WORDS } from './requestPairs.js';

export const REQUEST_HASH_BYTES = 8;
/** A row of them is below 2 KB: Postgres keeps it in one piece. */
export const PAIRS_A_BLOCK = 110;

export interface RequestBlock {
  /** Of the first block zeros: some block of a run begins at or before any hash. */
  readonly firstHash: Buffer;
  readonly pairs: Buffer;
}

/** Makes a run's filter and blocks of its pairs, which come sorted. */
export class RunWriter {
  readonly filter: RequestFilter;
  readonly #onBlock: (block: RequestBlock) => void;
  #isFirst = true;

  /** @param ids how many come @param onBlock takes each block; its bytes are the writer's */
  constructor(ids: number, onBlock: (block: RequestBlock) => void) {
    this.filter = RequestFilter.ofIds(ids);
    this.#onBlock = onBlock;
  }

  /**
   * Adds pairs, and turns their words into those of blocks. Equal hashes come in one call.
   * @param words of pairs, sorted (domain/requestPairs.ts)
   */
  add(words: Uint32Array): void {
    const { length } = words;
    this.filter.addPairs(words);
    const bytes = Buffer.from(words.buffer, words.byteOffset, words.byteLength).swap32();
    for (let begin = 0; begin < length; ) {
      let end = Math.min(length, begin + PAIRS_A_BLOCK * PAIR_WORDS);
      // Equal hashes stay in one block.
      while (end < length && words[end] === words[end - 4] && words[end + 1] === words[end - 3])
        end += PAIR_WORDS;
      const pairs = bytes.subarray(begin * 4, end * 4);
      this.#onBlock({
        firstHash: this.#isFirst ? Buffer.alloc(REQUEST_HASH_BYTES) : pairs.subarray(0, REQUEST_HASH_BYTES),
        pairs,
      });
      this.#isFirst = false;
      begin = end;
    }
  }
}

/** Ids of the ledger entries that a block has of a hash, ascending. @param hash 8 bytes at least */
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
