import { createCipheriv, createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { DEMO_SHEET } from '../../src/domain/demoSheet.js';
import { shufflePool } from '../../src/domain/games/rafflePool.js';
import { checkParSheet } from '../../src/domain/par.js';
import { outcomeTests } from '../../src/domain/rng/outcomeTests.js';
import { addCounts, judge, type RandomTest } from '../../src/domain/rng/randomTest.js';
import { shuffleTests } from '../../src/domain/rng/shuffleTests.js';
import { WORD_TESTS } from '../../src/domain/rng/wordTests.js';
import { compiledSheet, drawFrom } from '../../workers/drawBlock.js';
import run, { drawSeed, type Of, SUBJECTS, testsOf, wordsOf } from '../../workers/tallyDraws.js';

const checked = checkParSheet(DEMO_SHEET);
if (!('sheet' in checked)) throw new Error('the sheet of the demo game is faulty');
const { sheet } = checked;
const seedOf = (text: string): Buffer => createHash('sha256').update(text).digest();

const verdictOf = (of: Of, name: string, size: number) =>
  judge(testsOf(of, sheet), size, async (draw, units) =>
    run({ of, seed: seedOf(name), draw, first: 0, units, sheet }),
  );

/**
 * Returns the tests of a battery that fail for biased draws.
 * @param stretches ranges of the draws of the first run and of a repetition
 */
async function failing<Draws>(
  tests: readonly RandomTest<Draws>[],
  stretches: (draw: number) => Iterable<Draws>,
): Promise<string[]> {
  const { tests: judged } = await judge(tests, 1, async (draw) => {
    const sums = tests.map(({ counters }) => new Float64Array(counters));
    for (const each of stretches(draw)) {
      tests.forEach((one, i) => {
        const counts = new Float64Array(one.counters);
        one.tally(each, counts);
        addCounts(one, sums[i]!, counts);
      });
    }
    return sums;
  });
  return judged.filter(({ passed }) => !passed).map(({ name }) => name);
}

/**
 * Yields the words of a keystream in ranges. The function `change` is applied to each range before it is
 * yielded.
 */
function* words(count: number, name: string, change: (words: Uint32Array, stretch: number) => Uint32Array) {
  for (let i = 0; i < count; i++) yield change(wordsOf(seedOf(`${name} ${i}`), 262_144), i);
}

test('the random number generator passes its test battery, and the same seed gives the same figures', async () => {
  const verdicts = await Promise.all([
    verdictOf('keystream', 'one', SUBJECTS.keystream.least),
    verdictOf('outcomes', 'one', SUBJECTS.outcomes.least),
    verdictOf('shoes', 'one', SUBJECTS.shoes.least),
  ]);
  for (const { passed, notApplicable } of verdicts) {
    expect(passed).toBe(true);
    expect(notApplicable).toEqual([]);
  }
  expect(verdicts[0]!.tests).toHaveLength(30);
  expect(await verdictOf('outcomes', 'one', SUBJECTS.outcomes.least)).toEqual(verdicts[1]);
}, 180_000);

test('runs of the RNG test battery with other seeds fail about as often as the rule predicts', async () => {
  let failed = 0;
  const low = { tests: 0, below: 0 };
  for (let i = 0; i < 30; i++) {
    const { passed, tests } = await verdictOf('outcomes', `rate ${i}`, SUBJECTS.outcomes.least);
    if (!passed) failed++;
    // The test that counts repeated blocks is left out, because in correct draws repetitions never happen.
    const values = tests.filter(({ name }) => name !== 'repeated blocks');
    low.tests += values.length;
    low.below += values.filter(({ p }) => p < 0.1).length;
  }
  // On average 1.1 % of the runs fail, so of these 30 runs hardly any should. Of 150 p-values 15 should be
  // below 0.1, with a standard deviation of 3.7.
  expect(failed).toBeLessThanOrEqual(3);
  expect(low.tests).toBe(150);
  expect(low.below).toBeGreaterThan(4);
  expect(low.below).toBeLessThan(26);
}, 180_000);

test('the RNG test battery finds a bit that is set in a share of 0.501 of all words', async () => {
  // One of 500 zeros of this bit becomes a one.
  const draws = (draw: number) =>
    words(draw === 0 ? 40 : 80, `bit ${draw}`, (some) =>
      some.map((word, i) => (i % 500 === 0 ? (word | 8) >>> 0 : word)),
    );
  expect(await failing(WORD_TESTS.slice(0, 2), draws)).toContain('frequency of each bit');
}, 180_000);

test('the RNG test battery finds the weak low bits of a linear congruential generator', async () => {
  const draws = function* () {
    let state = 12_345;
    for (let i = 0; i < 6; i++) {
      yield Uint32Array.from({ length: 262_144 }, () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return state;
      });
    }
  };
  const names = await failing(WORD_TESTS, draws);
  expect(names).toContain('serial pairs of low bytes');
  expect(names).toContain('gaps of low bits');
}, 180_000);

test('the RNG test battery finds a repeated block, both of words and of outcomes', async () => {
  const kept = wordsOf(seedOf('kept'), 65_536);
  const copied = (draw: number) =>
    words(10, `repeated ${draw}`, (some, stretch) => {
      // The two copies of the repeated 256 KiB start at different positions.
      if (stretch === 2 || stretch === 7) some.set(kept, stretch * 1001);
      return some;
    });
  expect(await failing(WORD_TESTS, copied)).toContain('repeated stretches');
  const { distribution } = compiledSheet(sheet);
  const tests = outcomeTests(sheet, distribution, (packed) =>
    createHash('sha256').update(packed).digest().readUIntBE(0, 6),
  );
  const blocks = () => [
    Array.from({ length: 24 }, (_, i) => drawFrom(distribution, seedOf(`block ${i % 23}`), 65_536)),
  ];
  expect(await failing(tests, blocks)).toEqual(['repeated blocks']);
  const beside = () => [
    Array.from({ length: 24 }, (_, i) => drawFrom(distribution, seedOf(`block ${i >> 1}`), 65_536)),
  ];
  expect(await failing(tests, beside)).toContain('pairs across blocks');
}, 180_000);

test('the RNG test battery finds modulo bias', async () => {
  const { distribution } = compiledSheet(sheet);
  // A word of 16 bits has 65,536 values for 1,000 results, so the first 536 results each occur once more than
  // the others in 65,536 draws.
  const owner = Uint16Array.from({ length: 1000 }, (_, share) =>
    distribution.cumulative.findIndex((end) => end * 1000n > BigInt(share) * distribution.total),
  );
  const tests = outcomeTests(sheet, distribution, () => 0);
  const draws = (draw: number) =>
    Array.from({ length: draw === 0 ? 4 : 16 }, (_, stretch) =>
      Array.from({ length: 32 }, (_, i) => {
        const some = wordsOf(seedOf(`modulo ${draw} ${stretch} ${i}`), 32_768);
        return new Uint16Array(some.buffer, some.byteOffset, 65_536).map((word) => owner[word % 1000]!);
      }),
    );
  expect(await failing(tests.slice(0, 1), draws)).toEqual(['frequency of classes']);
}, 180_000);

test('the RNG test battery finds a shuffle that swaps each position with any other, and accepts a correct shuffle', async () => {
  const kinds = new Array<number>(64).fill(1);
  const prizes = kinds.slice(1).map((count) => ({ count }));
  const tests = shuffleTests({ name: 'pool', kinds, zone: 1 });
  const anyPlace = (seed: Uint8Array): Uint16Array => {
    const order = Uint16Array.from(kinds.keys());
    const bytes = createCipheriv('aes-256-ctr', seed, Buffer.alloc(16)).update(Buffer.alloc(64));
    for (let i = 0; i < 64; i++) {
      const j = bytes[i]! & 63;
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    return order;
  };
  const shuffles = (shuffle: (seed: Uint8Array) => Uint16Array) => (draw: number) => [
    Array.from({ length: 45_000 + draw }, (_, i) => shuffle(drawSeed('order', seedOf('a'), draw, 0, i))),
  ];
  expect(await failing(tests, shuffles(anyPlace))).toContain('pool: by place');
  expect(
    await failing(
      tests,
      shuffles((seed) => shufflePool({ poolSize: 64, prizes }, seed)),
    ),
  ).toEqual([]);
}, 180_000);

test('the RNG test battery repeats a test with a suspect p-value at four times the size, but not a test that clearly failed', async () => {
  const asked: [number, number][] = [];
  const of = (name: string, first: number, again: number) => ({
    name,
    p: (counts: Float64Array) => (counts[0] === 0 ? first : again),
  });
  const verdict = await judge(
    [of('good', 0.5, 0), of('unlucky', 0.009, 0.2), of('faulty', 0.009, 0.009), of('hopeless', 0.002, 0.9)],
    100,
    async (draw, size) => {
      asked.push([draw, size]);
      return Array.from({ length: 4 }, () => Float64Array.of(draw));
    },
  );
  expect(asked).toEqual([
    [0, 100],
    [1, 400],
  ]);
  expect(verdict.tests).toEqual([
    { name: 'good', p: 0.5, repeated: null, passed: true },
    { name: 'unlucky', p: 0.009, repeated: 0.2, passed: true },
    { name: 'faulty', p: 0.009, repeated: 0.009, passed: false },
    { name: 'hopeless', p: 0.002, repeated: null, passed: false },
  ]);
});
