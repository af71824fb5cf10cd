/**
 * Collects request ids for a run (a sorted list of released request ids). A pair consists of 8 bytes of an
 * id's hash and the id of a ledger entry; the pairs are then sorted by hash.
 */

/**
 * Length of a pair: the hash and then the entry id, each with the high word first, in the machine's byte
 * order.
 */
export const PAIR_WORDS = 4;
export const PAIR_BYTES = 4 * PAIR_WORDS;
const FIRST_PAIRS = 256;
/**
 * Planned number of pairs per bucket if the hashes are evenly distributed. A bucket above BUCKET_PAIRS_MAX is
 * sorted by a different method.
 */
const BUCKET_PAIRS = 8;
const BUCKET_PAIRS_MAX = 64;
const BUCKET_BITS_MAX = 17;
/**
 * Maximum number of pairs that are sorted, or moved to their buckets, before the thread can do other work.
 * This takes at most a few milliseconds.
 */
const TURN_PAIRS = 8192;
const MOVED_PAIRS = 65_536;

/** Receives sorted pairs, with equal hashes in one call. The receiver may change the words. */
export interface PairsTaker {
  add(words: Uint32Array): void;
}

export class RequestPairs {
  words: Uint32Array<ArrayBuffer>;
  count = 0;
  /** View of the bytes in the buffer of `words`. */
  #bytes: Buffer;
  /** Buffer that is reused between sorts, because clearing new memory costs as much as sorting. */
  #sorted = new Uint32Array(0);

  constructor(pairs = FIRST_PAIRS) {
    this.words = new Uint32Array(pairs * PAIR_WORDS);
    this.#bytes = Buffer.from(this.words.buffer);
  }

  /** Adds a pair of a hash and an entry id, given as unsigned 32-bit words. */
  add(hashHigh: number, hashLow: number, idHigh: number, idLow: number): void {
    const at = this.count * PAIR_WORDS;
    if (at === this.words.length) this.#ensure(1);
    const { words } = this;
    words[at] = hashHigh;
    words[at + 1] = hashLow;
    words[at + 2] = idHigh;
    words[at + 3] = idLow;
    this.count++;
  }

  addWords(words: Uint32Array): void {
    const pairs = words.length / PAIR_WORDS;
    this.#ensure(pairs);
    this.words.set(words, this.count * PAIR_WORDS);
    this.count += pairs;
  }

  /**
   * Adds the pairs of a block (domain/requestRun.ts).
   * @param write copies the block to a target, from the offset `at` on
   */
  addBlock(bytes: number, write: (target: Buffer, at: number) => void): void {
    const pairs = bytes / PAIR_BYTES;
    this.#ensure(pairs);
    const begin = this.count * PAIR_BYTES;
    const target = this.#bytes;
    write(target, begin);
    for (let at = begin; at < begin + bytes; at += 4) this.words[at / 4] = target.readUInt32BE(at);
    this.count += pairs;
  }

  /**
   * Removes all pairs outside a range.
   * @param to end of the range, exclusive
   */
  keep(from: number, to: number): void {
    this.words.copyWithin(0, from * PAIR_WORDS, to * PAIR_WORDS);
    this.count = to - from;
  }

  /**
   * Returns a view of a range of pairs, without copying the pairs.
   * @param to end of the range, exclusive
   */
  slice(from: number, to: number): Uint32Array {
    return this.words.subarray(from * PAIR_WORDS, to * PAIR_WORDS);
  }

  /**
   * Counts the pairs of all entries up to and including an entry. The pairs must have been added in the order
   * of their entries.
   */
  countTo(entryId: bigint): number {
    const high = Number(entryId >> 32n);
    const low = Number(entryId & 0xffff_ffffn);
    let from = 0;
    let to = this.count;
    while (from < to) {
      const middle = (from + to) >>> 1;
      const idHigh = this.words[middle * PAIR_WORDS + 2]!;
      const idLow = this.words[middle * PAIR_WORDS + 3]!;
      if (idHigh < high || (idHigh === high && idLow <= low)) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  /**
   * Writes all pairs, sorted by hash and, for equal hashes, in the order of addition. No pair may be added
   * meanwhile.
   * @param pause awaited after each short turn
   */
  async writeTo(taker: PairsTaker, pause: () => Promise<void>): Promise<void> {
    const { count, words: from } = this;
    if (count === 0) return;
    const bits = Math.min(BUCKET_BITS_MAX, Math.max(1, Math.ceil(Math.log2(count / BUCKET_PAIRS))));
    const shift = 32 - bits;
    // At first the start of each bucket. It has advanced to the bucket's end once all pairs are placed.
    const ends = new Uint32Array(2 ** bits + 1);
    for (let i = 0; i < count; i++) ends[(from[i * PAIR_WORDS]! >>> shift) + 1]!++;
    for (let bucket = 1; bucket < ends.length; bucket++) ends[bucket]! += ends[bucket - 1]!;
    if (this.#sorted.length < count * PAIR_WORDS) this.#sorted = new Uint32Array(count * PAIR_WORDS);
    const sorted = this.#sorted;
    for (let begin = 0; begin < count; begin += MOVED_PAIRS) {
      if (begin > 0) await pause();
      const end = Math.min(count, begin + MOVED_PAIRS);
      place(from, begin * PAIR_WORDS, end * PAIR_WORDS, sorted, ends, shift);
    }
    let done = 0;
    for (let bucket = 0, begin = 0; bucket < 2 ** bits; bucket++) {
      const end = ends[bucket]!;
      if (end - begin > BUCKET_PAIRS_MAX) sortLarge(sorted, begin, end);
      else sortSmall(sorted, begin * PAIR_WORDS, end * PAIR_WORDS);
      begin = end;
      if (end - done < TURN_PAIRS && end < count) continue;
      taker.add(sorted.subarray(done * PAIR_WORDS, end * PAIR_WORDS));
      done = end;
      if (done === count) return;
      await pause();
    }
  }

  #ensure(pairs: number): void {
    const words = (this.count + pairs) * PAIR_WORDS;
    if (words <= this.words.length) return;
    const longer = new Uint32Array(Math.max(words, this.words.length * 2));
    longer.set(this.words.subarray(0, this.count * PAIR_WORDS));
    this.words = longer;
    this.#bytes = Buffer.from(longer.buffer);
  }
}

/**
 * Moves pairs to their buckets.
 * @param ends position of the next pair in each bucket
 */
function place(
  from: Uint32Array,
  begin: number,
  end: number,
  to: Uint32Array,
  ends: Uint32Array,
  shift: number,
): void {
  for (let at = begin; at < end; at += PAIR_WORDS) {
    const high = from[at]!;
    const target = ends[high >>> shift]!++ * PAIR_WORDS;
    to[target] = high;
    to[target + 1] = from[at + 1]!;
    to[target + 2] = from[at + 2]!;
    to[target + 3] = from[at + 3]!;
  }
}

/**
 * Sorts the few pairs of a bucket in place.
 * @param begin first word
 * @param end end of the last pair, exclusive
 */
function sortSmall(words: Uint32Array, begin: number, end: number): void {
  for (let i = begin + PAIR_WORDS; i < end; i += PAIR_WORDS) {
    const high = words[i]!;
    const low = words[i + 1]!;
    let to = i - PAIR_WORDS;
    if (words[to]! < high || (words[to]! === high && words[to + 1]! <= low)) continue;
    const idHigh = words[i + 2]!;
    const idLow = words[i + 3]!;
    while (to >= begin && (words[to]! > high || (words[to]! === high && words[to + 1]! > low))) {
      words[to + 4] = words[to]!;
      words[to + 5] = words[to + 1]!;
      words[to + 6] = words[to + 2]!;
      words[to + 7] = words[to + 3]!;
      to -= PAIR_WORDS;
    }
    words[to + 4] = high;
    words[to + 5] = low;
    words[to + 6] = idHigh;
    words[to + 7] = idLow;
  }
}

/**
 * Sorts a bucket with many pairs, which occurs if somebody deliberately chose ids with similar hashes.
 * @param begin first pair
 */
function sortLarge(words: Uint32Array, begin: number, end: number): void {
  const copy = words.slice(begin * PAIR_WORDS, end * PAIR_WORDS);
  const order = Uint32Array.from({ length: end - begin }, (_, i) => i * PAIR_WORDS);
  order.sort((a, b) => copy[a]! - copy[b]! || copy[a + 1]! - copy[b + 1]! || a - b);
  for (let i = 0, at = begin * PAIR_WORDS; i < order.length; i++, at += PAIR_WORDS)
    for (let word = 0; word < PAIR_WORDS; word++) words[at + word] = copy[order[i]! + word]!;
}
