/**
 * A test of random draws, and how a battery of them is judged (docs/compliance.md).
 *
 * Each test counts a stretch of draws by itself, so that stretches are counted on several threads and their counts added up.
 */

export interface RandomTest<Draws> {
  readonly name: string;
  /** How many counters it has. */
  readonly counters: number;
  /** Adds what a stretch of draws has. */
  tally(draws: Draws, counts: Float64Array): void;
  /** @param counts of all stretches. @returns undefined: there is nothing to compare */
  p(counts: Float64Array): number | undefined;
  /** The counters are a list of values behind their number, to be put together instead of added up. */
  readonly isList?: boolean;
}

/** Adds the counts of further stretches. A list that is full takes no more. */
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

/** How often a value of a list was there before. */
export function repeatsIn(list: Float64Array): number {
  const values = list.slice(1, list[0]! + 1).sort();
  let repeated = 0;
  for (let i = 1; i < values.length; i++) if (values[i] === values[i - 1]) repeated++;
  return repeated;
}

export interface RandomTestResult {
  readonly name: string;
  /** Of the first draws. */
  readonly p: number;
  /** The p of four times as many fresh draws; null where there was no reason to draw again. */
  readonly repeated: number | null;
  readonly passed: boolean;
}

export interface RandomTestVerdict {
  readonly tests: readonly RandomTestResult[];
  /** Tests that these draws give nothing to compare for, such as runs of no win in a game that always wins. */
  readonly notApplicable: readonly string[];
  readonly passed: boolean;
}

const SUSPECT = 0.01;
const REPEATED_SIZE = 4;

/**
 * Judges a battery: a p below 0.01 is looked at again in four times as many fresh draws and fails if it is below 0.01 there, too; one
 * below 0.01 ÷ number of tests fails at once. So an honest generator fails in about 0.01 + 0.0001 × tests of all runs.
 * @param countsOf counts of so many draws; `draw` 0 or 1 names draws that are independent of each other
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
