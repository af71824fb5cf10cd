/**
 * The tests of shuffles: raffle pools and shoes. Each counts which kind of item lies at which place, and which two lie beside each
 * other.
 *
 * Items by place: of a uniform shuffle of N items the table of kinds by places has fixed sums on both sides. Its covariance is that of
 * Pearson's table but for a factor N ÷ (N − 1), so Σ(O − E)² ÷ E × (N − 1) ÷ N is distributed as chi-square with
 * (kinds − 1)(places − 1) degrees of freedom.
 */
import { chiSquareP, goodnessP } from './pValues.js';
import type { RandomTest } from './randomTest.js';

/** Shuffles of one make, in order. */
export type ShuffleTest = RandomTest<readonly ArrayLike<number>[]>;

export interface Shuffled {
  /** What is shuffled, such as `pool of 64 tickets`. */
  readonly name: string;
  /** How many items there are of each kind; a kind is the number of its place here. */
  readonly kinds: readonly number[];
  /** So many neighbouring places are taken as one; 1: each is counted by itself. */
  readonly zone: number;
}

/** Pairs are counted where places are: of few large shuffles there are too few. */
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

/** Two places beside each other, one pair of each shuffle, so that pairs are independent; all places take their turn. */
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
