/**
 * A run: request ids that were written together, sorted by the hash of partner and requestId, in blocks of a few hundred.
 * A block is found by its first hash, an id in it by binary search.
 *
 *   block   pairs, ascending: first 8 bytes of the hash (big endian), id of the ledger entry u64 (big endian)
 */
import { RequestFilter } from './requestFilter.js';

export const HASH_BYTES = 8;
export const PAIR_BYTES = 16;
const PAIR_WORDS = PAIR_BYTES / 4;
/** A row of them is below 2 KB: Postgres keeps it in one piece. */
const PAIRS_A_BLOCK = 110;

export interface RequestBlock {
  /** Of the first block zeros: some block of a run begins at or before any hash. */
  readonly firstHash: Buffer;
  readonly pairs: Buffer;
}

/** Makes a run's filter and blocks of its pairs, which come sorted. */
export class RunWriter {
  readonly filter: RequestFilter;
  readonly #onBlock: (block: RequestBlock) => void;
  /** Pairs of the block that is made, as it has them. */
  #words = new Uint32Array(PAIRS_A_BLOCK * PAIR_WORDS);
  #length = 0;
  #lastHigh = -1;
  #lastLow = -1;
  #isFirst = true;

  /** @param ids how many come @param onBlock takes each block; its bytes hold until the next one */
  constructor(ids: number, onBlock: (block: RequestBlock) => void) {
    this.filter = RequestFilter.ofIds(ids);
    this.#onBlock = onBlock;
  }

  /** Adds a pair. All words unsigned. */
  add(hashHigh: number, hashLow: number, idHigh: number, idLow: number): void {
    if (this.#length >= PAIRS_A_BLOCK * PAIR_WORDS) {
      // Equal hashes stay in one block.
      const isSame = hashHigh === this.#lastHigh && hashLow === this.#lastLow;
      if (!isSame) this.#end();
      else if (this.#length === this.#words.length) this.#words = longer(this.#words);
    }
    const words = this.#words;
    const at = this.#length;
    words[at] = swapped(hashHigh);
    words[at + 1] = swapped(hashLow);
    words[at + 2] = swapped(idHigh);
    words[at + 3] = swapped(idLow);
    this.#length = at + PAIR_WORDS;
    this.#lastHigh = hashHigh;
    this.#lastLow = hashLow;
    this.filter.add(hashHigh, hashLow);
  }

  /** The last block. */
  finish(): void {
    if (this.#length > 0) this.#end();
  }

  #end(): void {
    const pairs = Buffer.from(this.#words.buffer, 0, this.#length * 4);
    this.#onBlock({
      firstHash: this.#isFirst ? Buffer.alloc(HASH_BYTES) : pairs.subarray(0, HASH_BYTES),
      pairs,
    });
    this.#isFirst = false;
    this.#length = 0;
  }
}

/** A word of this machine, which is little endian, as a word of a block, or the other way round. */
export const swapped = (word: number): number =>
  ((word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0;

function longer(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const twice = new Uint32Array(words.length * 2);
  twice.set(words);
  return twice;
}

/** Ids of the ledger entries that a block has of a hash, ascending. @param hash 8 bytes at least */
export function findInBlock(pairs: Buffer, hash: Buffer): bigint[] {
  const compare = (place: number): number =>
    pairs.compare(hash, 0, HASH_BYTES, place * PAIR_BYTES, place * PAIR_BYTES + HASH_BYTES);
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
    found.push(pairs.readBigUInt64BE(place * PAIR_BYTES + HASH_BYTES));
  return found;
}

/** Request ids as they come of the ledger, to be sorted in bounded memory and in short turns. */
export class UnsortedRequests {
  #words = new Uint32Array(1024 * PAIR_WORDS);
  count = 0;

  /** Words as {@link RunWriter.add} takes them. @throws RangeError where there are {@link UNSORTED_MAX} already */
  add(hashHigh: number, hashLow: number, idHigh: number, idLow: number): void {
    const at = this.count * PAIR_WORDS;
    if (at === this.#words.length) {
      if (this.count >= UNSORTED_MAX) throw new RangeError('Too many request ids to be sorted at once');
      this.#words = longer(this.#words);
    }
    const words = this.#words;
    words[at] = hashHigh;
    words[at + 1] = hashLow;
    words[at + 2] = idHigh;
    words[at + 3] = idLow;
    this.count++;
  }

  /** Gives them to the writer of a run, sorted by hash, then as they came. @param pause waited for after each short turn */
  async writeTo(writer: RunWriter, pause: () => Promise<void>): Promise<void> {
    const words = this.#words;
    const { keys, ends } = this.#buckets();
    let begin = 0;
    let turn = 0;
    for (const end of ends) {
      const bucket = keys.subarray(begin, end).sort();
      sortTies(bucket, words);
      for (let i = 0; i < bucket.length; i++) {
        const at = placeOf(bucket[i]!) * PAIR_WORDS;
        writer.add(words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
      }
      turn += end - begin;
      begin = end;
      if (turn < TURN_IDS) continue;
      turn = 0;
      await pause();
    }
    writer.finish();
  }

  /**
   * The ids in buckets by the first bits of their hashes, each by 32 bits of its hash and its place: what a double holds. A bucket
   * is sorted in less than a millisecond.
   */
  #buckets(): { keys: Float64Array; ends: Uint32Array } {
    const words = this.#words;
    const { count } = this;
    const bits = Math.max(1, Math.ceil(Math.log2((count + 1) / BUCKET_IDS)));
    const shift = 32 - bits;
    const ends = new Uint32Array(2 ** bits);
    for (let i = 0; i < count; i++) ends[words[i * PAIR_WORDS]! >>> shift]!++;
    // Where each bucket begins; it is at its end once all are placed.
    let begin = 0;
    for (let bucket = 0; bucket < ends.length; bucket++) {
      const ids = ends[bucket]!;
      ends[bucket] = begin;
      begin += ids;
    }
    const keys = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const high = words[i * PAIR_WORDS]!;
      keys[ends[high >>> shift]!++] = high * UNSORTED_MAX + i;
    }
    return { keys, ends };
  }
}

/** With 32 bits of a hash, a place below this is what a double holds. */
const UNSORTED_MAX = 2 ** 21;
const BUCKET_IDS = 4096;
const TURN_IDS = 8192;

const highOf = (key: number): number => Math.floor(key / UNSORTED_MAX);
const placeOf = (key: number): number => key - highOf(key) * UNSORTED_MAX;

/** Of the few whose first 32 bits are the same, the next ones decide. */
function sortTies(bucket: Float64Array, words: Uint32Array): void {
  const lowOf = (key: number): number => words[placeOf(key) * PAIR_WORDS + 1]!;
  for (let i = 1; i < bucket.length; i++) {
    const moved = bucket[i]!;
    if (moved - bucket[i - 1]! >= UNSORTED_MAX) continue;
    let to = i;
    for (; to > 0; to--) {
      const before = bucket[to - 1]!;
      if (highOf(before) !== highOf(moved) || lowOf(before) <= lowOf(moved)) break;
      bucket[to] = before;
    }
    bucket[to] = moved;
  }
}
