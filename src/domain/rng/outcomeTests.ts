/**
 * Tests of a slot game's outcomes against its PAR sheet. The outcomes are tested in portions of several
 * blocks, each block with its own seed. Classes are the sheet's financial classes, (tierId, payMultiplier).
 */
import { type Distribution, packOutcomes } from '../outcome.js';
import type { ParSheet } from '../par.js';
import { goodnessP, poissonTailP } from './pValues.js';
import { type RandomTest, repeatsIn } from './randomTest.js';

/** Test of blocks of outcomes in order, as the service draws them. */
export type OutcomeTest = RandomTest<readonly Uint16Array[]>;

export const OUTCOMES_MIN = 1_000_000;
/** Maximum number of classes in the tests of pairs; the rarest classes are combined into one. */
const PAIR_CLASSES_MAX = 64;
const RUN_MAX = 400;
const BLOCKS_KEPT_MAX = 200_000;

interface Classes {
  /** Financial class of each combination. */
  readonly of: Uint16Array;
  readonly shares: readonly number[];
}

/**
 * Maps the result of {@link packOutcomes} to a number of 48 bits. Two different blocks are unlikely to have
 * the same number.
 */
export type BlockDigest = (packed: Uint8Array) => number;

/** @param digest hash function, which the caller must supply because the domain code has none */
export function outcomeTests(
  sheet: ParSheet,
  distribution: Distribution,
  digest: BlockDigest,
): OutcomeTest[] {
  const shares = sharesOf(distribution);
  const classes = classesOf(sheet, shares);
  const few = fewer(classes);
  const isWin = Uint8Array.from(sheet.combinations, ({ tierId }) => Number(tierId > 0));
  const winShare = shares.reduce((sum, share, i) => sum + share * isWin[i]!, 0);
  return [
    frequency('classes', classes),
    frequency('combinations', { of: Uint16Array.from(shares.keys()), shares }),
    pairs('pairs of neighbours', few, (blocks, count) => {
      for (const block of blocks)
        for (let i = 0; i + 1 < block.length; i += 2) count(block[i]!, block[i + 1]!);
    }),
    pairs('pairs across blocks', few, (blocks, count) => {
      for (let b = 0; b + 1 < blocks.length; b += 2) {
        const [one, other] = [blocks[b]!, blocks[b + 1]!];
        for (let i = 0; i < Math.min(one.length, other.length); i++) count(one[i]!, other[i]!);
      }
    }),
    noWinRuns(isWin, winShare),
    repeatedBlocks(
      shares.reduce((sum, share) => sum + share * share, 0),
      digest,
    ),
  ];
}

function sharesOf({ cumulative, total }: Distribution): number[] {
  // The probabilities are scaled to as many digits as a double has, because the exact numbers may have
  // thousands of digits.
  const scale = 10n ** 18n;
  return cumulative.map((end, i) => Number(((end - (cumulative[i - 1] ?? 0n)) * scale) / total) / 1e18);
}

function classesOf({ combinations }: ParSheet, shares: readonly number[]): Classes {
  const numbers = new Map<string, number>();
  const sums: number[] = [];
  const of = Uint16Array.from(combinations, ({ tierId, payMultiplier }, i) => {
    const key = `${tierId}/${payMultiplier}`;
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    sums[number] = (sums[number] ?? 0) + shares[i]!;
    return number;
  });
  return { of, shares: sums };
}

/** Combines the rarest classes into one class. */
function fewer({ of, shares }: Classes): Classes {
  const byShare = [...shares.keys()].sort((a, b) => shares[b]! - shares[a]!);
  const numbers = new Map(byShare.map((each, rank) => [each, Math.min(rank, PAIR_CLASSES_MAX - 1)]));
  const sums = new Array<number>(Math.min(shares.length, PAIR_CLASSES_MAX)).fill(0);
  shares.forEach((share, each) => {
    sums[numbers.get(each)!]! += share;
  });
  return { of: of.map((each) => numbers.get(each)!), shares: sums };
}

const frequency = (of: string, { of: classOf, shares }: Classes): OutcomeTest => ({
  name: `frequency of ${of}`,
  counters: shares.length,
  tally(blocks, counts) {
    for (const block of blocks) for (let i = 0; i < block.length; i++) counts[classOf[block[i]!]!]!++;
  },
  p: (counts) => goodnessP(counts, shares),
});

const pairs = (
  name: string,
  { of, shares }: Classes,
  each: (blocks: readonly Uint16Array[], count: (one: number, other: number) => void) => void,
): OutcomeTest => ({
  name,
  counters: shares.length ** 2,
  tally(blocks, counts) {
    each(blocks, (one, other) => counts[of[one]! * shares.length + of[other]!]!++);
  },
  p: (counts) =>
    goodnessP(
      counts,
      shares.flatMap((one) => shares.map((other) => one * other)),
    ),
});

/**
 * Test of the number of outcomes without a win between two wins. Each portion of outcomes counts a fixed
 * number of such sequences.
 */
const noWinRuns = (isWin: Uint8Array, share: number): OutcomeTest => ({
  name: 'runs of no win',
  counters: RUN_MAX + 1,
  tally(blocks, counts) {
    const outcomes = blocks.reduce((sum, { length }) => sum + length, 0);
    let left = Math.floor(outcomes * share - 8 * Math.sqrt(outcomes * share));
    let run = 0;
    for (const block of blocks) {
      for (let i = 0; i < block.length && left > 0; i++) {
        if (isWin[block[i]!] === 0) run++;
        else {
          counts[Math.min(run, RUN_MAX)]!++;
          left--;
          run = 0;
        }
      }
    }
  },
  p: (counts) =>
    goodnessP(
      counts,
      Array.from({ length: RUN_MAX + 1 }, (_, run) => (1 - share) ** run * (run === RUN_MAX ? 1 : share)),
    ),
});

/**
 * Test that no block repeats, which would mean that a seed was used twice.
 * @param same probability that two outcomes are equal
 */
const repeatedBlocks = (same: number, digest: BlockDigest): OutcomeTest => ({
  name: 'repeated blocks',
  counters: BLOCKS_KEPT_MAX + 1,
  tally(blocks, counts) {
    for (const block of blocks) {
      // A short last block may equal another one by chance, so it is skipped.
      if (block.length < blocks[0]!.length || counts[0] === BLOCKS_KEPT_MAX) continue;
      counts[++counts[0]!] = digest(packOutcomes(block));
    }
  },
  p(counts) {
    const kept = counts[0]!;
    if (same > 0.999) return undefined;
    return kept < 2 ? undefined : poissonTailP(repeatsIn(counts), (kept * (kept - 1)) / 2 ** 49);
  },
  isList: true,
});
