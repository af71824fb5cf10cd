/**
 * Tests of shuffles of raffle pools and shoes. They count which kind of item lies at which position, and
 * which kinds are neighbours.
 *
 * Items by position: in a uniform shuffle of N items, the table of kinds by positions has fixed sums on both
 * sides. Its covariance differs from that of Pearson's table only by the factor N ÷ (N − 1), so Σ(O − E)² ÷ E
 * × (N − 1) ÷ N has a chi-square distribution with (kinds − 1)(places − 1) degrees of freedom.
 */
import { chiSquareP, goodnessP } from './pValues.js';
import type { RandomTest } from './randomTest.js';

/** Test of several shuffles with the same specification, in order. */
export type ShuffleTest = RandomTest<readonly ArrayLike<number>[]>;

export interface Shuffled {
  /** Description of the shuffled items, such as `pool of 64 tickets`. */
  readonly name: string;
  /** Number of items of each kind. The index in this list is the kind. */
  readonly kinds: readonly number[];
  /** Number of neighbouring positions that are combined; 1 counts each position separately. */
  readonly zone: number;
}

/** Pairs are tested only if positions are counted separately, because there are too few large shuffles. */
export function shuffleTests(shuffled: Shuffled): ShuffleTest[] {
  return shuffled.zone === 1 ? [byPlace(shuffled), neighbours(shuffled)] : [byPlace(shuffled)];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

function byPlace({ name, kinds, zone }: Shuffled): ShuffleTest {
  const items = sum(kinds);
  const zones = items / zone;
  return {
    name: `${name}: by place`,
    counters: kinds.length * zones + 1,
    tally(shuffles, counts) {
      for (const shuffle of shuffles) {
        for (let i = 0; i < items; i++) counts[Math.floor(i / zone) * kinds.length + shuffle[i]!]!++;
      }
      counts[kinds.length * zones]! += shuffles.length;
    },
    p(counts) {
      const shuffles = counts[kinds.length * zones]!;
      if (shuffles === 0) return undefined;
      let statistic = 0;
      for (let at = 0; at < zones; at++) {
        kinds.forEach((count, kind) => {
          const expected = (shuffles * count) / zones;
          statistic += (counts[at * kinds.length + kind]! - expected) ** 2 / expected;
        });
      }
      return chiSquareP((statistic * (items - 1)) / items, (kinds.length - 1) * (zones - 1));
    },
  };
}

/**
 * Test of the items at two neighbouring positions. It takes one pair from each shuffle, so that pairs are
 * independent, and cycles through all positions.
 */
function neighbours({ name, kinds }: Shuffled): ShuffleTest {
  const items = sum(kinds);
  const shares = kinds.flatMap((one, i) =>
    kinds.map((other, j) => (one * (i === j ? other - 1 : other)) / (items * (items - 1))),
  );
  return {
    name: `${name}: pairs`,
    counters: kinds.length ** 2,
    tally(shuffles, counts) {
      shuffles.forEach((shuffle, number) => {
        const at = number % (items - 1);
        counts[shuffle[at]! * kinds.length + shuffle[at + 1]!]!++;
      });
    },
    p: (counts) => goodnessP(counts, shares),
  };
}
