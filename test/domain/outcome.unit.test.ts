import { createCipheriv, createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  AMBIGUOUS,
  compileDistribution,
  type Distribution,
  drawOutcomes,
  packOutcomes,
  unpackOutcomes,
} from '../../src/domain/outcome.js';
import { checkParSheet, type ParSheet } from '../../src/domain/par.js';
import { rootOfTree } from '../../src/domain/publicLog/blockTree.js';
import { drawBlock, MAX_BLOCK_OUTCOMES } from '../../workers/drawBlock.js';
import { makeBlock } from '../../workers/makeBlock.js';

function sheetOf(name: string, changes: object = {}): ParSheet {
  const text = readFileSync(new URL(`../par-sheets/${name}.json`, import.meta.url), 'utf8');
  const checked = checkParSheet({ ...JSON.parse(text), ...changes });
  if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
  return checked.sheet;
}

type Shown = [tierId: number, payMultiplier: number, comboProbability: number, displayWeight: number];

function sheetWith(combinations: Shown[]): ParSheet {
  const sheet = sheetOf('penny-sub-cent');
  return {
    ...sheet,
    combinations: combinations.map(([tierId, payMultiplier, comboProbability, displayWeight]) => ({
      ...sheet.combinations[0]!,
      tierId,
      payMultiplier,
      comboProbability,
      displayWeight,
    })),
  };
}

const arbitrarySheet = fc
  .array(
    fc.tuple(
      fc.integer({ min: 0, max: 3 }),
      fc.constantFrom(0, 1, 2.5),
      fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0.25, 0.1, 1e-9)),
      fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 100 }), fc.double({ min: 0, max: 10, noNaN: true })),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .filter((combinations) => combinations.some(([, , probability]) => probability > 0))
  .map((combinations) => sheetWith(combinations as Shown[]));

const sampleSheets = (): [string, ParSheet][] => [
  ['classic-3-reel', sheetOf('classic-3-reel')],
  ['double-strike', sheetOf('double-strike')],
  ['penny-sub-cent', sheetOf('penny-sub-cent')],
  // The RTP that this file states is not the RTP of its combinations.
  ['five-reel-wild', sheetOf('five-reel-wild', { certifiedRtp: 0.7775 })],
];

// Exact fractions, for a computation that is independent of the service's code.
type Fraction = readonly [numerator: bigint, denominator: bigint];

function fractionOf(value: number): Fraction {
  const [mantissa, exponent = '0'] = String(value).split('e') as [string, string?];
  const [whole, decimals = ''] = mantissa.split('.') as [string, string?];
  const power = Number(exponent) - decimals.length;
  const digits = BigInt(whole + decimals);
  return power >= 0 ? [digits * 10n ** BigInt(power), 1n] : [digits, 10n ** BigInt(-power)];
}

const plus = (a: Fraction, b: Fraction): Fraction => [a[0] * b[1] + b[0] * a[1], a[1] * b[1]];
const times = (a: Fraction, b: Fraction): Fraction => [a[0] * b[0], a[1] * b[1]];
const over = (a: Fraction, b: Fraction): Fraction => [a[0] * b[1], a[1] * b[0]];
const equal = (a: Fraction, b: Fraction): boolean => a[0] * b[1] === b[0] * a[1];
const sumOf = (fractions: Fraction[]): Fraction => fractions.reduce(plus, [0n, 1n]);

/**
 * The exact probability of each combination by the documented rule: the class by its probability, and a
 * combination within its class by its weight.
 */
function exactProbabilities({ combinations }: ParSheet): Fraction[] {
  const all = sumOf(combinations.map((each) => fractionOf(each.comboProbability)));
  return combinations.map((own) => {
    const members = combinations.filter(
      (each) => each.tierId === own.tierId && each.payMultiplier === own.payMultiplier,
    );
    const classSum = sumOf(members.map((each) => fractionOf(each.comboProbability)));
    if (classSum[0] === 0n) return [0n, 1n];
    const weigh = members.some((each) => each.displayWeight > 0)
      ? (each: typeof own) => fractionOf(each.displayWeight)
      : (each: typeof own) => fractionOf(each.comboProbability);
    return times(over(classSum, all), over(weigh(own), sumOf(members.map(weigh))));
  });
}

/**
 * Draws one outcome from a first word and further words. Also returns how many of the further words were
 * read.
 */
function drawOne(distribution: Distribution, word: number, slowWords: bigint[]) {
  const out = new Uint16Array(1);
  let read = 0;
  const next = () => {
    const slow = slowWords[read++];
    if (slow === undefined) throw new Error('still ambiguous');
    return slow;
  };
  drawOutcomes(distribution, Uint16Array.of(word), next, out);
  return { index: out[0]!, read };
}

const startOf = (distribution: Distribution, index: number) => distribution.cumulative[index - 1] ?? 0n;

describe('the distribution of a PAR sheet', () => {
  test.each(sampleSheets())(
    'compiles %s into a distribution with exactly its normalized probabilities',
    (_, sheet) => {
      const distribution = compileDistribution(sheet);
      exactProbabilities(sheet).forEach((probability, index) => {
        const own: Fraction = [
          distribution.cumulative[index]! - startOf(distribution, index),
          distribution.total,
        ];
        expect(equal(own, probability)).toBe(true);
      });
    },
  );

  test('compiles any PAR sheet into a distribution with exactly its normalized probabilities', () => {
    fc.assert(
      fc.property(arbitrarySheet, (sheet) => {
        const distribution = compileDistribution(sheet);
        expect(distribution.cumulative.at(-1)).toBe(distribution.total);
        exactProbabilities(sheet).forEach((probability, index) => {
          const mass = distribution.cumulative[index]! - startOf(distribution, index);
          expect(equal([mass, distribution.total], probability)).toBe(true);
        });
      }),
    );
  });

  test('pays each class of outcomes with a probability that does not depend on displayWeight', () => {
    const sheet = sheetOf('double-strike');
    const reweighted = {
      ...sheet,
      combinations: sheet.combinations.map((each, index) => ({ ...each, displayWeight: (index * 7) % 5 })),
    };
    const paid = (each: ParSheet) => {
      const { cumulative, total } = compileDistribution(each);
      const byClass = new Map<string, Fraction>();
      each.combinations.forEach(({ tierId, payMultiplier }, index) => {
        const key = `${tierId} ${payMultiplier}`;
        const mass: Fraction = [cumulative[index]! - (cumulative[index - 1] ?? 0n), total];
        byClass.set(key, plus(byClass.get(key) ?? [0n, 1n], mass));
      });
      return byClass;
    };
    const before = paid(sheet);
    const after = paid(reweighted);
    expect([...after.keys()]).toEqual([...before.keys()]);
    for (const [key, probability] of before) expect(equal(probability, after.get(key)!)).toBe(true);
  });

  test('rejects a PAR sheet without any probability', () => {
    expect(() => compileDistribution(sheetWith([[0, 0, 0, 1]]))).toThrow(RangeError);
    expect(() => compileDistribution({ ...sheetWith([]), combinations: [] })).toThrow(RangeError);
  });
});

describe('unbiased drawing', () => {
  /**
   * Proves that drawing is unbiased by measuring which share of [0, 1) draws each combination.
   *
   * Each decided word of the table counts directly. For each ambiguous word, the 2^64 values of the second
   * word are counted by binary search, because their outcomes rise with the value (the next test checks
   * this). A second word that leaves the outcome open crosses a boundary, so the share must lie between two
   * counts.
   */
  test.each(sampleSheets())(
    '%s: draws each combination from exactly the share of random numbers that is its probability',
    (_, sheet) => {
      const distribution = compileDistribution(sheet);
      const scale = 1n << 80n;
      const settled = new Array<bigint>(sheet.combinations.length).fill(0n);
      let unsettled = 0n;
      distribution.table.forEach((code, word) => {
        if (code !== AMBIGUOUS) {
          settled[code]! += 1n << 64n;
          return;
        }
        // If all later bits are 0, which is the lower end of the second word's interval, each second word
        // belongs to one combination.
        const lowerEnd = (slow: bigint) => drawOne(distribution, word, [slow, ...new Array(40).fill(0n)]);
        const upperEnd = (slow: bigint) =>
          drawOne(distribution, word, [slow, ...new Array(40).fill((1n << 64n) - 1n)]);
        let from = 0n;
        while (from < 1n << 64n) {
          const { index } = lowerEnd(from);
          let low = from;
          let high = (1n << 64n) - 1n;
          while (low < high) {
            const middle = (low + high + 1n) >> 1n;
            if (lowerEnd(middle).index === index) low = middle;
            else high = middle - 1n;
          }
          // `low` is the last second word whose interval starts in the combination. The interval may end in
          // another combination.
          const isWhole = upperEnd(low).index === index;
          settled[index]! += low - from + (isWhole ? 1n : 0n);
          if (!isWhole) unsettled += 1n;
          from = low + 1n;
        }
      });
      expect(settled.reduce((sum, each) => sum + each, unsettled)).toBe(scale);
      expect(unsettled).toBeLessThanOrEqual(BigInt(sheet.combinations.length));
      exactProbabilities(sheet).forEach(([numerator, denominator], index) => {
        // At most two second words are not counted, namely those that cross the two ends of the combination.
        expect(settled[index]! * denominator <= numerator * scale).toBe(true);
        expect(numerator * scale <= (settled[index]! + 2n) * denominator).toBe(true);
      });
    },
  );

  /**
   * Every interval that decides an outcome, however wide, lies completely within the interval of one
   * combination. So no probability is lost, however many words are read.
   */
  test('settles every draw as soon as its whole interval lies within the interval of one combination', () => {
    fc.assert(
      fc.property(
        arbitrarySheet,
        fc.nat(),
        fc.array(fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }), { minLength: 3, maxLength: 3 }),
        fc.integer({ min: -2, max: 2 }),
        (sheet, choice, words, offset) => {
          const distribution = compileDistribution(sheet);
          const { cumulative, total, table } = distribution;
          // The numbers are close to a boundary or random.
          const boundary = cumulative[choice % cumulative.length]!;
          const width = 16n + 64n * 3n;
          const anywhere = (((words[0]! << 64n) | words[1]!) << 80n) | words[2]!;
          const near = (boundary << width) / total + BigInt(offset);
          const chosen = choice % 3 === 0 ? anywhere : near;
          const bits = ((chosen % (1n << width)) + (1n << width)) % (1n << width);
          const word = Number(bits >> (width - 16n));
          const slow = [2n, 1n, 0n].map((shift) => (bits >> (64n * shift)) & ((1n << 64n) - 1n));
          const owns = (index: number, read: number) => {
            const shown = 16n + 64n * BigInt(read);
            const prefix = bits >> (width - shown);
            return (
              startOf(distribution, index) << shown <= prefix * total &&
              (prefix + 1n) * total <= cumulative[index]! << shown
            );
          };
          const settlesAt = [0, 1, 2, 3].find((read) => cumulative.some((_, index) => owns(index, read)));
          if (settlesAt === undefined) {
            expect(() => drawOne(distribution, word, slow)).toThrow('still ambiguous');
            return;
          }
          const { index, read } = drawOne(distribution, word, slow);
          expect(read).toBe(settlesAt);
          expect(owns(index, read)).toBe(true);
          expect(table[word] === AMBIGUOUS).toBe(read > 0);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('the decided words and the intervals of ambiguous words sum to the exact probability of each combination', () => {
    fc.assert(
      fc.property(arbitrarySheet, (sheet) => {
        const distribution = compileDistribution(sheet);
        const { table, total, cumulative } = distribution;
        // The shares are in units of 1 ÷ (65536 × total).
        const shares = new Array<bigint>(cumulative.length).fill(0n);
        table.forEach((code, word) => {
          if (code !== AMBIGUOUS) {
            shares[code]! += total;
            return;
          }
          const [wordStart, wordEnd] = [BigInt(word) * total, BigInt(word + 1) * total];
          cumulative.forEach((end, index) => {
            const start = startOf(distribution, index) * 65_536n;
            const low = start > wordStart ? start : wordStart;
            const high = end * 65_536n < wordEnd ? end * 65_536n : wordEnd;
            if (high > low) shares[index]! += high - low;
          });
        });
        exactProbabilities(sheet).forEach((probability, index) => {
          expect(equal([shares[index]!, total * 65_536n], probability)).toBe(true);
        });
      }),
      { numRuns: 20 },
    );
  });

  test('never draws a combination without probability, not even at the ends of the range', () => {
    const distribution = compileDistribution(
      sheetWith([
        [0, 0, 0, 1],
        [1, 1, 0.5, 0],
        [1, 1, 0, 1],
        [2, 1, 0, 0],
        [3, 1, 0.5, 1],
        [3, 1, 0, 0],
      ]),
    );
    // In the second class of this sheet, the combination with probability 0 has all the display weight, so it
    // is shown for wins of the other combination.
    const all = Uint16Array.from({ length: 65_536 }, (_, word) => word);
    const out = new Uint16Array(65_536);
    drawOutcomes(distribution, all, () => 0n, out);
    expect(new Set(out)).toEqual(new Set([2, 4]));
    expect(out.filter((index) => index === 2)).toHaveLength(32_768);
  });

  test('rejects an output array that is too short for the outcomes', () => {
    const distribution = compileDistribution(sheetOf('penny-sub-cent'));
    expect(() => drawOutcomes(distribution, new Uint16Array(2), () => 0n, new Uint16Array(1))).toThrow(
      RangeError,
    );
  });
});

/** ln Γ(x) by Stirling's series from x + 10 on, accurate to 13 digits. */
function logGamma(x: number): number {
  let shift = 0;
  let y = x;
  for (; y < x + 10; y++) shift += Math.log(y);
  const series = 1 / (12 * y) - 1 / (360 * y ** 3) + 1 / (1260 * y ** 5) - 1 / (1680 * y ** 7);
  return (y - 0.5) * Math.log(y) - y + Math.log(2 * Math.PI) / 2 + series - shift;
}

/** P(χ² ≥ statistic), which is the regularised upper incomplete gamma function Q(df ÷ 2, statistic ÷ 2). */
function chiSquareSurvival(statistic: number, degreesOfFreedom: number): number {
  const a = degreesOfFreedom / 2;
  const x = statistic / 2;
  if (x <= 0) return 1;
  const scale = Math.exp(-x + a * Math.log(x) - logGamma(a));
  if (x < a + 1) {
    let term = 1 / a;
    let sum = term;
    for (let n = 1; n < 1_000; n++) {
      term *= x / (a + n);
      sum += term;
    }
    return 1 - scale * sum;
  }
  let fraction = 0;
  for (let n = 1_000; n >= 1; n--) fraction = (n * (n - a)) / (x + 2 * n + 1 - a - fraction);
  return scale / (x + 1 - a - fraction);
}

/** Returns the p-value of the counts. Combinations with an expected count below 5 are pooled. */
function chiSquareP(counts: number[], probabilities: number[], draws: number): number {
  let statistic = 0;
  let cells = 0;
  const pooled = { count: 0, expected: 0 };
  const add = (count: number, expected: number) => {
    statistic += (count - expected) ** 2 / expected;
    cells++;
  };
  counts.forEach((count, index) => {
    const expected = probabilities[index]! * draws;
    if (expected >= 5) {
      add(count, expected);
    } else {
      pooled.count += count;
      pooled.expected += expected;
    }
  });
  if (pooled.expected > 0) add(pooled.count, pooled.expected);
  return chiSquareSurvival(statistic, cells - 1);
}

test('the chi-square function of these tests agrees with published tables', () => {
  expect(chiSquareSurvival(3.841459, 1)).toBeCloseTo(0.05, 6);
  expect(chiSquareSurvival(18.307038, 10)).toBeCloseTo(0.05, 6);
  expect(chiSquareSurvival(59.703064, 30)).toBeCloseTo(0.001, 6);
  expect(chiSquareSurvival(5, 10)).toBeCloseTo(0.891178, 6);
});

describe('blocks of outcomes', () => {
  const seedOf = (text: string) => createHash('sha256').update(text).digest();

  /**
   * Draws a million outcomes for each seed. With random seeds, this test would fail once in a thousand
   * executions by chance. The seeds are fixed, so the test either always passes or always fails. The seeds
   * are the first five numbers and were not selected.
   */
  test.each([1, 2, 3, 4, 5])(
    'draws a million outcomes of double-strike that fit its distribution (seed %d)',
    (number) => {
      const sheet = sheetOf('double-strike');
      const draws = 1_000_000;
      const counts = new Array<number>(sheet.combinations.length).fill(0);
      for (const index of drawBlock(sheet, seedOf(`seed ${number}`), draws)) counts[index]!++;
      const probabilities = exactProbabilities(sheet).map(([a, b]) => Number((a * 10n ** 18n) / b) / 1e18);
      expect(chiSquareP(counts, probabilities, draws)).toBeGreaterThan(0.001);
    },
  );

  test('the frequency test of outcomes detects a wrong distribution', () => {
    const sheet = sheetOf('double-strike');
    const counts = new Array<number>(sheet.combinations.length).fill(0);
    for (const index of drawBlock(sheet, seedOf('seed 1'), 1_000_000)) counts[index]!++;
    const all = sheet.combinations.map((each) => each.comboProbability);
    expect(chiSquareP(counts, all, 1_000_000)).toBeLessThan(1e-9);
  });

  test('draws the same block again from its sheet, seed and length, and a longer block with the same start', () => {
    const sheet = sheetOf('double-strike');
    const block = makeBlock({ sheet, gameId: 7, fromIndex: 100, count: 70_000 });
    expect(block.outcomes).toEqual(packOutcomes(drawBlock(sheet, block.seed, 70_000)));
    expect(drawBlock(sheet, block.seed, 80_000).subarray(0, 70_000)).toEqual(unpackOutcomes(block.outcomes));
    expect(Buffer.from(block.commitment)).toEqual(rootOfTree(block.tree));
    expect(block.counts.reduce((sum, each) => sum + each, 0)).toBe(70_000);
    expect(block.counts).toHaveLength(sheet.combinations.length);
    expect([block.seed.length, block.nonce.length, block.commitment.length]).toEqual([32, 32, 32]);
  });

  test('draws outcomes from the documented keystreams of AES-256 in counter mode', () => {
    const sheet = sheetOf('double-strike');
    const seed = seedOf('keystream');
    const count = 600_000;
    const stream = (first: number, bytes: number) =>
      createCipheriv('aes-256-ctr', seed, Buffer.from([first, ...new Array(15).fill(0)])).update(
        Buffer.alloc(bytes),
      );
    const fast = stream(0x00, count * 2);
    const slow = stream(0x80, 64 * 1024);
    const distribution = compileDistribution(sheet);
    let offset = 0;
    const next = () => {
      offset += 8;
      return slow.readBigUInt64LE(offset - 8);
    };
    const words = Uint16Array.from({ length: count }, (_, i) => fast.readUInt16LE(i * 2));
    const expected = new Uint16Array(count);
    drawOutcomes(distribution, words, next, expected);
    expect(offset).toBeGreaterThan(1024);
    expect(drawBlock(sheet, seed, count)).toEqual(expected);
  });

  test('makes different blocks from two executions of the same task', () => {
    const task = { sheet: sheetOf('classic-3-reel'), gameId: 1, fromIndex: 0, count: 100 };
    const [first, second] = [makeBlock(task), makeBlock(task)];
    expect(first.seed).not.toEqual(second.seed);
    expect(first.nonce).not.toEqual(second.nonce);
    expect(first.nonce).not.toEqual(first.seed);
    expect(first.commitment).not.toEqual(second.commitment);
  });

  test.each([0, -1, 1.5, MAX_BLOCK_OUTCOMES + 1, Number.NaN])(
    'refuses to make a block with %d outcomes',
    (count) => {
      expect(() => makeBlock({ sheet: sheetOf('classic-3-reel'), gameId: 1, fromIndex: 0, count })).toThrow(
        RangeError,
      );
    },
  );

  test('draws the right outcomes for each of many PAR sheets in turn', () => {
    const seed = seedOf('turns');
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < 40; index++) {
        const sheet = sheetWith([
          [0, 0, 1 - index / 50, 1],
          [1, 1, index / 50, 1],
        ]);
        const wins = drawBlock(sheet, seed, 10_000).reduce((sum, each) => sum + each, 0);
        expect(Math.abs(wins - index * 200)).toBeLessThan(300);
      }
    }
  });
});

describe('packing of outcomes', () => {
  test('packs outcomes as 16-bit little-endian numbers and unpacks them again', () => {
    expect([...packOutcomes(Uint16Array.of(1, 0x1234, 0xfffe))]).toEqual([1, 0, 0x34, 0x12, 0xfe, 0xff]);
    fc.assert(
      fc.property(fc.uint16Array(), fc.integer({ min: 0, max: 3 }), (outcomes, shift) => {
        const packed = packOutcomes(outcomes);
        const memory = new Uint8Array(packed.length + shift);
        memory.set(packed, shift);
        expect(unpackOutcomes(memory.subarray(shift))).toEqual(outcomes);
      }),
    );
  });

  test('rejects packed outcomes with an odd number of bytes', () => {
    expect(() => unpackOutcomes(new Uint8Array(3))).toThrow(RangeError);
  });
});
