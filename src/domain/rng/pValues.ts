/**
 * Computes p-values for the tests of random numbers: the probability that the observed counts, or more
 * extreme ones, occur by chance. All p-values are two-sided, because numbers that fit too well are as
 * suspicious as those that don't fit.
 *
 * The incomplete gamma function is computed by its series (NIST DLMF 8.11.4) below a + 1 and by its continued
 * fraction (8.9.2, Lentz's method) above. The logarithm of the gamma function uses Lanczos's approximation.
 * The unit tests compare the results with published values.
 */

const LANCZOS_G = 7;
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];
const EPSILON = 1e-15;
const TINY = 1e-300;
/**
 * Maximum number of terms of the series and of the continued fraction. Both need a multiple of √a terms, so
 * this suffices for a million degrees of freedom.
 */
const TERMS_MAX = 100_000;

/** Computes ln Γ(x) for x ≥ 0.5. */
export function logGamma(x: number): number {
  let sum = LANCZOS[0]!;
  for (let i = 1; i < LANCZOS.length; i++) sum += LANCZOS[i]! / (x - 1 + i);
  const t = x - 0.5 + LANCZOS_G;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

/**
 * Computes the regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 − P(a, x), for a ≥ 0.5 and x ≥
 * 0.
 */
export function incompleteGamma(a: number, x: number): { p: number; q: number } {
  if (!(a >= 0.5) || !(x >= 0))
    throw new RangeError(`the incomplete gamma function is not defined for ${a}, ${x}`);
  if (x === 0) return { p: 0, q: 1 };
  const factor = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    let term = 1 / a;
    let sum = term;
    for (let n = 1; n < TERMS_MAX && term > sum * EPSILON; n++) {
      term *= x / (a + n);
      sum += term;
    }
    const p = Math.min(1, sum * factor);
    return { p, q: 1 - p };
  }
  let b = x + 1 - a;
  let c = 1 / TINY;
  let d = 1 / b;
  let fraction = d;
  for (let n = 1; n < TERMS_MAX; n++) {
    const numerator = -n * (n - a);
    b += 2;
    d = 1 / nonZero(numerator * d + b);
    c = nonZero(b + numerator / c);
    const step = c * d;
    fraction *= step;
    if (Math.abs(step - 1) < EPSILON) break;
  }
  const q = Math.min(1, factor * fraction);
  return { p: 1 - q, q };
}

const nonZero = (value: number): number => (Math.abs(value) < TINY ? TINY : value);

/**
 * Returns the p-value of a chi-square distributed sum.
 * @param freedom degrees of freedom, 1 or more
 */
export function chiSquareP(statistic: number, freedom: number): number {
  const { p, q } = incompleteGamma(freedom / 2, statistic / 2);
  return Math.min(1, 2 * Math.min(p, q));
}

/** Returns the p-value of a standard normal deviate. */
export const normalP = (z: number): number => incompleteGamma(0.5, (z * z) / 2).q;

/**
 * Returns the probability of at least `count` events if `mean` are expected (Poisson). It is one-sided,
 * because a count of zero is not suspicious.
 */
export function poissonTailP(count: number, mean: number): number {
  return count === 0 ? 1 : incompleteGamma(count, mean).p;
}

/** Minimum expected count of a cell in the chi-square test. Cells with a lower one are combined. */
const EXPECTED_MIN = 10;

/**
 * Pearson's chi-square test of counts in independent draws. Cells with an expected count below 10 are
 * combined into one.
 * @param shares probability of each cell; they sum to 1
 * @returns undefined if fewer than two cells are left to compare
 */
export function goodnessP(counts: ArrayLike<number>, shares: ArrayLike<number>): number | undefined {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i]!;
  let statistic = 0;
  let cells = 0;
  let restCount = 0;
  let restExpected = 0;
  const add = (count: number, expected: number): void => {
    statistic += (count - expected) ** 2 / expected;
    cells++;
  };
  for (let i = 0; i < counts.length; i++) {
    const expected = total * shares[i]!;
    if (expected >= EXPECTED_MIN) add(counts[i]!, expected);
    else {
      restCount += counts[i]!;
      restExpected += expected;
    }
  }
  // An outcome with probability 0 occurred, so the p-value is 0.
  if (restExpected < total * 1e-12 && restCount > 0) return 0;
  if (restExpected >= EXPECTED_MIN) add(restCount, restExpected);
  return cells < 2 ? undefined : chiSquareP(statistic, cells - 1);
}
