/**
 * A test of random draws, and the evaluation of a battery of tests (docs/compliance.md).
 *
 * Each test counts a portion of the draws independently of other portions. So several threads can count
 * portions, whose counts are then added.
 */

export interface RandomTest<Draws> {
  readonly name: string;
  readonly counters: number;
  /** Adds the counts for a portion of the draws to the counters of the test. */
  tally(draws: Draws, counts: Float64Array): void;
  /**
   * @param counts sums over all portions
   * @returns undefined if there is nothing to compare
   */
  p(counts: Float64Array): number | undefined;
  /**
   * Whether the counters are a list of values, preceded by its length. Lists are concatenated instead of
   * added.
   */
  readonly isList?: boolean;
}

/**
 * Adds the counts of a further portion of draws to the sum of the counts so far. A full list ignores further
 * values.
 */
export function addCounts(
  { isList = false }: Pick<RandomTest<unknown>, 'isList'>,
  sum: Float64Array,
  more: Float64Array,
): void {
  if (!isList) {
    for (let i = 0; i < sum.length; i++) sum[i]! += more[i]!;
    return;
  }
  const taken = Math.min(more[0]!, sum.length - 1 - sum[0]!);
  sum.set(more.subarray(1, taken + 1), sum[0]! + 1);
  sum[0]! += taken;
}

export function repeatsIn(list: Float64Array): number {
  const values = list.slice(1, list[0]! + 1).sort();
  let repeated = 0;
  for (let i = 1; i < values.length; i++) if (values[i] === values[i - 1]) repeated++;
  return repeated;
}

export interface RandomTestResult {
  readonly name: string;
  /** p-value of the test with the first draws. */
  readonly p: number;
  /** p-value of the repeated test, with four times as many fresh draws. Null if the test was not repeated. */
  readonly repeated: number | null;
  readonly passed: boolean;
}

export interface RandomTestVerdict {
  readonly tests: readonly RandomTestResult[];
  /**
   * Names of the tests for which these draws have nothing to compare, such as runs of no win in a game that
   * always wins.
   */
  readonly notApplicable: readonly string[];
  readonly passed: boolean;
}

const SUSPECT = 0.01;
const REPEATED_SIZE = 4;

/**
 * Evaluates a battery of tests. A test with p below 0.01 is repeated with four times as many fresh draws and
 * fails if p is below 0.01 again. A test with p below 0.01 ÷ number of tests fails at once. So an honest
 * generator fails in about 0.01 + 0.0001 × tests of all evaluations.
 * @param countsOf returns the counts of a number of draws; `draw` 0 and 1 are independent draws
 */
export async function judge(
  tests: readonly Pick<RandomTest<unknown>, 'name' | 'p'>[],
  size: number,
  countsOf: (draw: 0 | 1, size: number) => Promise<readonly Float64Array[]>,
): Promise<RandomTestVerdict> {
  const first = await countsOf(0, size);
  const values = tests.map((test, i) => test.p(first[i]!));
  const applicable = values.filter((p) => p !== undefined).length;
  const isSuspect = (p: number | undefined): boolean =>
    p !== undefined && p < SUSPECT && p >= SUSPECT / applicable;
  const again = values.some(isSuspect) ? await countsOf(1, REPEATED_SIZE * size) : undefined;
  const judged = tests.flatMap(({ name, p: pOf }, i): RandomTestResult[] => {
    const p = values[i];
    if (p === undefined) return [];
    const repeated = again !== undefined && isSuspect(p) ? (pOf(again[i]!) ?? 0) : null;
    return [{ name, p, repeated, passed: repeated === null ? p >= SUSPECT : repeated >= SUSPECT }];
  });
  const notApplicable = tests.filter((_, i) => values[i] === undefined).map(({ name }) => name);
  return { tests: judged, notApplicable, passed: judged.every(({ passed }) => passed) };
}
