/**
 * Tests of a keystream, read as uniform 32-bit words.
 *
 * From D. Knuth, The Art of Computer Programming, volume 2, section 3.3.2: frequency, serial, gap, poker,
 * coupon collector, permutation, run, serial correlation and subsequence tests. Section 3.3.4 has the reason
 * for the spectral test, which uses periodograms here. The keystream is tested in portions. In tests whose
 * pieces vary in length (runs, gaps, coupons), each portion counts a fixed number of pieces, because counting
 * as many as fit would favour short ones.
 */
import { fourierPower } from './fourier.js';
import { chiSquareP, goodnessP, poissonTailP } from './pValues.js';
import { type RandomTest, repeatsIn } from './randomTest.js';

export type WordTest = RandomTest<Uint32Array>;

const WORD = 2 ** 32;
/** With fewer words, the expected counts in the cells of the largest tables would be too low. */
export const WORDS_MIN = 2_000_000;

const uniform = (cells: number): number[] => new Array<number>(cells).fill(1 / cells);

const equalCells = (
  name: string,
  cells: number,
  tally: (words: Uint32Array, counts: Float64Array) => void,
): WordTest => ({ name, counters: cells, tally, p: (counts) => goodnessP(counts, uniform(cells)) });

/**
 * Returns a number of pieces that a portion of the words almost surely contains (8 standard deviations), for
 * pieces with this mean length and deviation.
 */
const piecesIn = (words: number, mean: number, deviation: number): number =>
  Math.max(0, Math.floor(words / mean - 8 * (deviation / mean) * Math.sqrt(words / mean)));

/** Test that each of the 32 bits of a word is 1 as often as 0. */
const BITS: WordTest = {
  name: 'frequency of each bit',
  counters: 33,
  tally(words, counts) {
    for (let bit = 0; bit < 32; bit++) {
      let ones = 0;
      for (let i = 0; i < words.length; i++) ones += (words[i]! >>> bit) & 1;
      counts[bit]! += ones;
    }
    counts[32]! += words.length;
  },
  p(counts) {
    const words = counts[32]!;
    let statistic = 0;
    for (let bit = 0; bit < 32; bit++) statistic += (counts[bit]! - words / 2) ** 2 / (words / 4);
    return chiSquareP(statistic, 32);
  },
};

const BYTES = equalCells('frequency of 8 bits', 256, (words, counts) => {
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    counts[word & 0xff]!++;
    counts[(word >>> 8) & 0xff]!++;
    counts[(word >>> 16) & 0xff]!++;
    counts[word >>> 24]!++;
  }
});

const HALVES = equalCells('frequency of 16 bits', 65_536, (words, counts) => {
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    counts[word & 0xffff]!++;
    counts[word >>> 16]!++;
  }
});

/**
 * Test of the high or the low bytes of consecutive words, because the low bits of some generators hardly
 * change.
 */
const pairs = (end: string, shift: number): WordTest =>
  equalCells(`serial pairs of ${end} bytes`, 65_536, (words, counts) => {
    for (let i = 0; i + 1 < words.length; i += 2) {
      counts[((words[i]! >>> shift) & 0xff) * 256 + ((words[i + 1]! >>> shift) & 0xff)]!++;
    }
  });

const RUN_MAX = 7;
const factorial = (n: number): number => (n < 2 ? 1 : n * factorial(n - 1));
const RUN_SHARES = Array.from({ length: RUN_MAX }, (_, i) =>
  i + 1 === RUN_MAX ? 1 / factorial(RUN_MAX) : 1 / factorial(i + 1) - 1 / factorial(i + 2),
);

/**
 * Test of the lengths of runs. The word that ends a run is skipped, so that the runs are independent of each
 * other (Knuth, exercise 14).
 */
const runs = (name: string, goesOn: (before: number, word: number) => boolean): WordTest => ({
  name,
  counters: RUN_MAX,
  tally(words, counts) {
    // A run and the word that ends it take 2.718… (Euler's number) words on average.
    let left = piecesIn(words.length, Math.E, 0.88);
    let length = 1;
    for (let i = 1; i < words.length && left > 0; i++) {
      if (goesOn(words[i - 1]!, words[i]!)) length++;
      else {
        counts[Math.min(length, RUN_MAX) - 1]!++;
        left--;
        length = 1;
        i++;
      }
    }
  },
  p: (counts) => goodnessP(counts, RUN_SHARES),
});

const GAP_SHARE = 1 / 16;
const GAP_MAX = 160;
const GAP_SHARES = Array.from({ length: GAP_MAX + 1 }, (_, gap) =>
  gap === GAP_MAX ? (1 - GAP_SHARE) ** GAP_MAX : GAP_SHARE * (1 - GAP_SHARE) ** gap,
);

/** Test of the gaps: the number of words between two words whose four highest or lowest bits are zero. */
const gaps = (end: string, shift: number): WordTest => ({
  name: `gaps of ${end} bits`,
  counters: GAP_MAX + 1,
  tally(words, counts) {
    let left = piecesIn(words.length, 16, 16);
    let gap = 0;
    for (let i = 0; i < words.length && left > 0; i++) {
      if (((words[i]! >>> shift) & 15) !== 0) gap++;
      else {
        counts[Math.min(gap, GAP_MAX)]!++;
        left--;
        gap = 0;
      }
    }
  },
  p: (counts) => goodnessP(counts, GAP_SHARES),
});

/**
 * Numbers of partitions for the poker test. The probability that five draws of d values have r distinct ones
 * is d!/(d−r)! · S(5, r) ÷ d⁵, with Stirling numbers of the second kind S.
 */
const STIRLING_5 = [1, 15, 25, 10, 1];
const POKER_SHARES = STIRLING_5.map((ways, r) => {
  let share = ways / 16 ** 5;
  for (let i = 0; i <= r; i++) share *= 16 - i;
  return share;
});

const POKER: WordTest = {
  name: 'poker',
  counters: 5,
  tally(words, counts) {
    for (let i = 0; i + 5 <= words.length; i += 5) {
      let seen = 0;
      for (let k = 0; k < 5; k++) seen |= 1 << (words[i + k]! >>> 28);
      counts[bitsOf(seen) - 1]!++;
    }
  },
  p: (counts) => goodnessP(counts, POKER_SHARES),
};

function bitsOf(mask: number): number {
  let bits = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}

const COUPONS = 8;
const COUPON_MAX = 60;
/**
 * Probability of each number of words, from 8 on, until all 8 values have been seen. The last element is for
 * all greater numbers.
 */
const COUPON_SHARES = couponShares();

function couponShares(): number[] {
  let states = new Array<number>(COUPONS + 1).fill(0);
  states[0] = 1;
  const shares: number[] = [];
  let whole = 0;
  for (let length = 1; length < COUPON_MAX; length++) {
    const next = new Array<number>(COUPONS + 1).fill(0);
    for (let seen = 0; seen < COUPONS; seen++) {
      next[seen]! += (states[seen]! * seen) / COUPONS;
      next[seen + 1]! += (states[seen]! * (COUPONS - seen)) / COUPONS;
    }
    if (length >= COUPONS) shares.push(next[COUPONS]!);
    whole += next[COUPONS]!;
    states = next;
  }
  return [...shares, 1 - whole];
}

/**
 * Test of the number of words until all values of three bits have been seen: 21.7 on average, with a
 * deviation of 8.
 */
const COUPON: WordTest = {
  name: 'coupon collector',
  counters: COUPON_SHARES.length,
  tally(words, counts) {
    let left = piecesIn(words.length, 21.743, 8);
    let seen = 0;
    let length = 0;
    for (let i = 0; i < words.length && left > 0; i++) {
      seen |= 1 << (words[i]! >>> 29);
      length++;
      if (seen !== 255) continue;
      counts[Math.min(length, COUPON_MAX) - COUPONS]!++;
      left--;
      seen = 0;
      length = 0;
    }
  },
  p: (counts) => goodnessP(counts, COUPON_SHARES),
};

const PERMUTATIONS = equalCells('permutations of 4', 24, (words, counts) => {
  for (let i = 0; i + 4 <= words.length; i += 4) {
    const a = words[i]!;
    const b = words[i + 1]!;
    const c = words[i + 2]!;
    const d = words[i + 3]!;
    const first = Number(a > b) + Number(a > c) + Number(a > d);
    counts[first * 6 + (Number(b > c) + Number(b > d)) * 2 + Number(c > d)]!++;
  }
});

const LAGS = 16;

/**
 * Test of the products of words 1 to 16 positions apart, with each word scaled to mean 0 and variance 1/12.
 */
const CORRELATION: WordTest = {
  name: 'serial correlation of lags 1 to 16',
  counters: 2 * LAGS,
  tally(words, counts) {
    const centred = new Float64Array(words.length);
    for (let i = 0; i < words.length; i++) centred[i] = (words[i]! + 0.5) / WORD - 0.5;
    for (let lag = 1; lag <= LAGS; lag++) {
      let sum = 0;
      for (let i = lag; i < centred.length; i++) sum += centred[i]! * centred[i - lag]!;
      counts[lag - 1]! += sum;
      counts[LAGS + lag - 1]! += Math.max(0, words.length - lag);
    }
  },
  p(counts) {
    let statistic = 0;
    for (let lag = 0; lag < LAGS; lag++) statistic += (counts[lag]! * 12) ** 2 / counts[LAGS + lag]!;
    return chiSquareP(statistic, LAGS);
  },
};

const SPECTRUM = 4096;
const FREQUENCIES = SPECTRUM / 2 - 1;

/** Test of the sum of periodograms of 4,096 words: all frequencies should have equal power. */
const SPECTRAL: WordTest = {
  name: 'spectral',
  counters: FREQUENCIES + 1,
  tally(words, counts) {
    const signal = new Float64Array(SPECTRUM);
    const scale = Math.sqrt(12 / SPECTRUM);
    for (let at = 0; at + SPECTRUM <= words.length; at += SPECTRUM) {
      for (let i = 0; i < SPECTRUM; i++) signal[i] = ((words[at + i]! + 0.5) / WORD - 0.5) * scale;
      const power = fourierPower(signal);
      for (let k = 0; k < FREQUENCIES; k++) counts[k]! += power[k + 1]!;
      counts[FREQUENCIES]!++;
    }
  },
  p(counts) {
    const blocks = counts[FREQUENCIES]!;
    if (blocks < 100) return undefined;
    // The mean and variance of each power are 1, except for a part of 1.2 ÷ 4,096.
    let statistic = 0;
    for (let k = 0; k < FREQUENCIES; k++) statistic += (counts[k]! - blocks) ** 2 / blocks;
    // The variance of the square of a power's deviation is 2 + 6 ÷ blocks, from the fourth moment of an
    // exponential value.
    return chiSquareP(FREQUENCIES + (statistic - FREQUENCIES) / Math.sqrt(1 + 3 / blocks), FREQUENCIES);
  },
};

/** Test of pairs of words that are `step` positions apart, by four bits of each. */
const subsequence = (step: number): WordTest =>
  equalCells(
    `subsequence of every ${step}${['', '', 'nd', 'rd'][step] ?? 'th'} word`,
    256,
    (words, counts) => {
      for (let i = 0; i + step < words.length; i += 2 * step) {
        counts[(words[i]! >>> 28) * 16 + (words[i + step]! >>> 28)]!++;
      }
    },
  );

/**
 * One in 4,096 words is stored together with the next word. If a part of the keystream repeats, its stored
 * words repeat, too.
 */
const REPEAT_SHARE = 4096;
/** Maximum number of values that the test of repeats stores. About 400 million drawn words give as many. */
const REPEATS_MAX = 100_000;

/**
 * Test of repeated 64-bit values at any distance. A value consists of a word whose low 12 bits are zero and
 * the next word. The counters hold the values themselves, preceded by their number.
 */
const REPEATS: WordTest = {
  name: 'repeated stretches',
  counters: REPEATS_MAX + 1,
  tally(words, counts) {
    for (let i = 0; i + 1 < words.length; i++) {
      const word = words[i]!;
      const kept = counts[0]!;
      if (word % REPEAT_SHARE !== 0 || kept === REPEATS_MAX) continue;
      // The value combines 20 and 32 bits, which a double holds exactly. It is never 0, which means no value.
      counts[++counts[0]!] = (word / REPEAT_SHARE) * WORD + words[i + 1]! + 1;
    }
  },
  p(counts) {
    const kept = counts[0]!;
    return poissonTailP(repeatsIn(counts), (kept * (kept - 1)) / 2 / 2 ** 52);
  },
  isList: true,
};

export const WORD_TESTS: readonly WordTest[] = [
  ...[BITS, BYTES, HALVES, pairs('high', 24), pairs('low', 0)],
  runs('runs up', (before, word) => before < word),
  runs('runs down', (before, word) => before > word),
  ...[gaps('high', 28), gaps('low', 0), POKER, COUPON, PERMUTATIONS, CORRELATION, SPECTRAL, REPEATS],
  ...Array.from({ length: 15 }, (_, i) => subsequence(i + 2)),
];
