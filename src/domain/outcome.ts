/**
 * Outcomes of a slot game: their exact distribution, how they are drawn from a keystream, and how a block of
 * them is packed. An outcome is the index of a combination of the PAR sheet.
 *
 * The financial class of an outcome is its (tierId, payMultiplier). A class is drawn by the sum of its
 * combinations' probabilities, and the combination within the class by its displayWeight. One draw from the
 * product of the two distributions decides class and combination, so the probability of a combination is
 *
 *     (class sum ÷ sum of all) × (weight ÷ class weight sum)
 *
 * which is a ratio of the sheet's own decimals. All probabilities get one common denominator N: combination i
 * owns the interval [cumulative[i−1], cumulative[i]) of N.
 *
 * A draw is free of bias. It reads the binary digits of a uniform real number in [0, 1), 16 digits first.
 * They fix an interval of width 2^−16. If one combination's interval contains the whole interval, the outcome
 * is decided; a table of 65,536 entries has the result. Otherwise 64 more digits are read, and so on until
 * the outcome is decided. These additional digits come from a separate stream, so that the position of each
 * first word is fixed.
 */

import { endianness } from 'node:os';
import { decimalOf, toCommonExponent } from './decimal.js';
import { MAX_COMBINATIONS, type ParSheet } from './par.js';

const FAST_BITS = 16;
const FAST_VALUES = 1 << FAST_BITS;
const SLOW_BITS = 64n;
/**
 * Maximum number of times that a draw reads further digits. With random words, the probability that a draw is
 * still undecided then is below 2^-6000.
 */
const MAX_EXTENSIONS = 100;

/** Value in the table for 16 first bits that do not decide the outcome. */
export const AMBIGUOUS = 0xffff;

const OUTCOME_BYTES = 2;

const IS_LITTLE_ENDIAN = endianness() === 'LE';

/** Exact distribution over the combinations of a sheet, as plain data. */
export interface Distribution {
  /**
   * Common denominator of all probabilities. Combination i has the probability
   * `(cumulative[i] − cumulative[i−1]) / total`.
   */
  readonly total: bigint;
  readonly cumulative: readonly bigint[];
  /** Combination decided by the first 16 bits, or {@link AMBIGUOUS}. */
  readonly table: Uint16Array;
}

/**
 * Compiles the distribution of a sheet, normalised to 1.
 * @throws RangeError if the sheet has too many combinations, or none with a probability above 0
 */
export function compileDistribution(sheet: ParSheet): Distribution {
  if (sheet.combinations.length > MAX_COMBINATIONS)
    throw new RangeError('the PAR sheet has too many combinations');
  const masses = combinationMasses(sheet);
  const cumulative: bigint[] = [];
  let total = 0n;
  for (const mass of masses) {
    total += mass;
    cumulative.push(total);
  }
  if (total === 0n) throw new RangeError('no combination of the PAR sheet has a probability above 0');
  return { total, cumulative, table: tableOf(cumulative, total) };
}

/**
 * Draws one outcome for each word of `fast` into `out`.
 * @param fast uniform random words
 * @param nextSlowWord returns the next word of a stream of uniform random 64-bit words, independent of `fast`
 * @param out at least as long as `fast`
 */
export function drawOutcomes(
  distribution: Distribution,
  fast: Uint16Array,
  nextSlowWord: () => bigint,
  out: Uint16Array,
): void {
  if (out.length < fast.length) throw new RangeError('the output array is too small for the outcomes');
  const { table } = distribution;
  for (let i = 0; i < fast.length; i++) {
    const word = fast[i]!;
    const code = table[word]!;
    out[i] = code === AMBIGUOUS ? decideSlowly(distribution, word, nextSlowWord) : code;
  }
}

/**
 * Reads more words until the dyadic interval [bits, bits + 1) ÷ 2^width lies within the interval of one
 * combination.
 */
function decideSlowly(distribution: Distribution, word: number, nextSlowWord: () => bigint): number {
  const { cumulative, total } = distribution;
  let bits = BigInt(word);
  let width = BigInt(FAST_BITS);
  for (let extensions = 0; extensions < MAX_EXTENSIONS; extensions++) {
    bits = (bits << SLOW_BITS) | nextSlowWord();
    width += SLOW_BITS;
    const low = bits * total;
    const index = ownerOf(cumulative, low >> width);
    // The start of the dyadic interval, low ÷ 2^width, lies in the interval of the combination `index`. The
    // whole dyadic interval lies in it if the end of the dyadic interval is not beyond it.
    if (low + total <= cumulative[index]! << width) return index;
  }
  throw new Error('a draw did not end, so the random words are not random');
}

/**
 * Returns the first combination whose interval ends above the point. Empty intervals are never returned,
 * because they end where they start.
 */
function ownerOf(cumulative: readonly bigint[], point: bigint): number {
  let low = 0;
  let high = cumulative.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (cumulative[middle]! > point) high = middle;
    else low = middle + 1;
  }
  return low;
}

function tableOf(cumulative: readonly bigint[], total: bigint): Uint16Array {
  const table = new Uint16Array(FAST_VALUES).fill(AMBIGUOUS);
  const values = BigInt(FAST_VALUES);
  let start = 0n;
  cumulative.forEach((end, index) => {
    const firstWhole = (start * values + total - 1n) / total;
    const afterWhole = (end * values) / total;
    if (firstWhole < afterWhole) table.fill(index, Number(firstWhole), Number(afterWhole));
    start = end;
  });
  return table;
}

/** Computes each combination's probability as a whole number of parts of one common denominator. */
function combinationMasses(sheet: ParSheet): bigint[] {
  const probabilities = toCommonExponent(sheet.combinations.map((each) => decimalOf(each.comboProbability)));
  const weights = toCommonExponent(sheet.combinations.map((each) => decimalOf(each.displayWeight)));
  const masses = new Array<bigint>(sheet.combinations.length).fill(0n);
  const classes: { sum: bigint; weightSum: bigint; weightOf: Map<number, bigint> }[] = [];
  let denominator = 1n;
  for (const members of financialClasses(sheet)) {
    const sum = sumOf(members, probabilities.digits);
    if (sum === 0n) continue;
    const given = sumOf(members, weights.digits) > 0n ? weights.digits : probabilities.digits;
    const divisor = members.reduce((gcd, index) => greatestCommonDivisor(gcd, given[index]!), 0n);
    const weightOf = new Map(members.map((index) => [index, given[index]! / divisor]));
    const weightSum = sumOf(members, given) / divisor;
    classes.push({ sum, weightSum, weightOf });
    denominator *= weightSum / greatestCommonDivisor(denominator, weightSum);
  }
  for (const { sum, weightSum, weightOf } of classes) {
    const share = sum * (denominator / weightSum);
    for (const [index, weight] of weightOf) masses[index] = share * weight;
  }
  const divisor = masses.reduce(greatestCommonDivisor, 0n);
  return divisor > 1n ? masses.map((mass) => mass / divisor) : masses;
}

/** Groups the indices of the combinations by financial class (tierId, payMultiplier). */
function financialClasses(sheet: ParSheet): Iterable<number[]> {
  const classes = new Map<string, number[]>();
  sheet.combinations.forEach(({ tierId, payMultiplier }, index) => {
    const key = `${tierId}/${payMultiplier}`;
    const members = classes.get(key);
    if (members === undefined) classes.set(key, [index]);
    else members.push(index);
  });
  return classes.values();
}

const REDUCED_MAX = 2n ** 256n;

function sumOf(indexes: readonly number[], values: readonly bigint[]): bigint {
  return indexes.reduce((sum, index) => sum + values[index]!, 0n);
}

/**
 * Returns a common divisor: the greatest one if both numbers are of ordinary size, otherwise 1. Euclid's
 * algorithm would take thousands of long divisions for huge numbers and save little, and extreme decimals of
 * a sheet must not block the threads.
 */
function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  if (a === 0n || b === 0n) return a + b;
  if (a > REDUCED_MAX || b > REDUCED_MAX) return 1n;
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}

// Packing ------------------------------------------------------------------------------------------------

/**
 * Packs outcomes as 16-bit little-endian codes. On a little-endian machine the result uses the same memory as
 * the outcomes.
 */
export function packOutcomes(outcomes: Uint16Array): Uint8Array {
  const bytes = new Uint8Array(outcomes.buffer, outcomes.byteOffset, outcomes.byteLength);
  return IS_LITTLE_ENDIAN ? bytes : swapBytes(bytes);
}

/**
 * Inverse of {@link packOutcomes}. On a little-endian machine, aligned bytes are read in place instead of
 * copied.
 * @throws RangeError if the number of bytes is odd
 */
export function unpackOutcomes(bytes: Uint8Array): Uint16Array {
  if (bytes.byteLength % OUTCOME_BYTES !== 0)
    throw new RangeError('the packed outcomes end in the middle of an outcome');
  let source = bytes;
  if (!IS_LITTLE_ENDIAN) source = swapBytes(bytes);
  else if (bytes.byteOffset % OUTCOME_BYTES !== 0) source = Uint8Array.from(bytes);
  return new Uint16Array(source.buffer, source.byteOffset, source.byteLength / OUTCOME_BYTES);
}

function swapBytes(bytes: Uint8Array): Uint8Array {
  const swapped = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) swapped[i] = bytes[i ^ 1]!;
  return swapped;
}
