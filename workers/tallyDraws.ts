/**
 * Draws words, outcomes, tickets or shoes for the tests of randomness and counts them, on a worker thread of
 * a piscina pool. The draws use the same code as in production. Only the seeds are made here, one after the
 * other from the seed of the whole run of tests, so that a run can be repeated.
 */
import { createHash } from 'node:crypto';
import { shufflePool } from '../src/domain/games/rafflePool.js';
import { shuffleShoe } from '../src/domain/games/shoe.js';
import type { ParSheet } from '../src/domain/par.js';
import { OUTCOMES_MIN, outcomeTests } from '../src/domain/rng/outcomeTests.js';
import { addCounts, type RandomTest } from '../src/domain/rng/randomTest.js';
import { type Shuffled, shuffleTests } from '../src/domain/rng/shuffleTests.js';
import { WORD_TESTS, WORDS_MIN } from '../src/domain/rng/wordTests.js';
import { compiledSheet, drawFrom, keystream } from './drawBlock.js';

export type Of = 'keystream' | 'outcomes' | 'order' | 'shoes';

export interface TallyTask {
  readonly of: Of;
  /** Seed of the whole run of tests, 32 bytes. */
  readonly seed: Uint8Array;
  /** Number of the draw. Different numbers give independent draws. */
  readonly draw: number;
  /** Number of the first stretch (range of draws). A stretch has {@link Subject.stretch} units. */
  readonly first: number;
  /** Number of words, outcomes, tickets or shoes to draw. */
  readonly units: number;
  /** PAR sheet for the tests of outcomes. */
  readonly sheet: ParSheet;
}

interface Subject {
  readonly unit: string;
  /** Default number of units that a run of the tests draws; `least` is the minimum. */
  readonly usual: number;
  readonly least: number;
  /** Number of units that are drawn and counted at once. */
  readonly stretch: number;
}

const BLOCK_OUTCOMES = 65_536;
const SMALL = 64;
const LARGE = 40_960;
const ORDER_STRETCH = 262_144;

export const SUBJECTS: Readonly<Record<Of, Subject>> = {
  keystream: { unit: 'words', usual: 10_000_000, least: WORDS_MIN, stretch: 262_144 },
  outcomes: { unit: 'outcomes', usual: 10_000_000, least: OUTCOMES_MIN, stretch: 32 * BLOCK_OUTCOMES },
  order: { unit: 'tickets', usual: 20_000_000, least: 4_000_000, stretch: ORDER_STRETCH },
  shoes: { unit: 'shoes', usual: 200_000, least: 60_000, stretch: 2048 },
};

const equalKinds = (kinds: number, each: number): number[] => new Array<number>(kinds).fill(each);
const SMALL_POOL: Shuffled = { name: 'pool of 64 tickets', kinds: equalKinds(SMALL, 1), zone: 1 };
const LARGE_POOL: Shuffled = { name: 'pool of 40,960 tickets', kinds: equalKinds(8, LARGE / 8), zone: 1024 };
const DECKS = [1, 8];
const shoeOf = (decks: number): Shuffled => ({
  name: `shoe of ${decks} deck${decks === 1 ? '' : 's'}`,
  kinds: equalKinds(52, decks),
  zone: 1,
});

/** A group of tests that all count the same draws of each stretch. */
interface Group<Draws> {
  readonly tests: readonly RandomTest<Draws>[];
  draw(units: number, seedOf: (number: number) => Uint8Array): Draws;
}

const group = <Draws>(of: Group<Draws>): Group<unknown> => of as Group<unknown>;

const tableOf = ({ kinds }: Shuffled) => ({
  poolSize: kinds.reduce((sum, count) => sum + count, 0),
  // The first kind is that of the tickets without a prize, whose code is 0, so it is not in the prize table.
  prizes: kinds.slice(1).map((count) => ({ count })),
});

/**
 * Creates the group of tests for raffle pools of one specification.
 * @param ticketsOf returns the number of tickets of a stretch to use
 */
const pools = (shuffled: Shuffled, ticketsOf: (units: number) => number, seedsFrom: number) => {
  const table = tableOf(shuffled);
  return group<readonly Uint16Array[]>({
    tests: shuffleTests(shuffled),
    draw: (units, seedOf) =>
      Array.from({ length: Math.floor(ticketsOf(units) / table.poolSize) }, (_, i) =>
        shufflePool(table, seedOf(seedsFrom + i)),
      ),
  });
};

const digest = (packed: Uint8Array): number => createHash('sha256').update(packed).digest().readUIntBE(0, 6);

function groupsOf(of: Of, sheet: ParSheet): Group<unknown>[] {
  switch (of) {
    case 'keystream':
      return [group<Uint32Array>({ tests: WORD_TESTS, draw: (units, seedOf) => wordsOf(seedOf(0), units) })];
    case 'outcomes': {
      const { distribution } = compiledSheet(sheet);
      return [
        group<readonly Uint16Array[]>({
          tests: outcomeTests(sheet, distribution, digest),
          draw: (units, seedOf) =>
            Array.from({ length: Math.ceil(units / BLOCK_OUTCOMES) }, (_, i) =>
              drawFrom(distribution, seedOf(i), Math.min(BLOCK_OUTCOMES, units - i * BLOCK_OUTCOMES)),
            ),
        }),
      ];
    }
    case 'order':
      return [
        pools(SMALL_POOL, (units) => units - (units < ORDER_STRETCH ? 0 : LARGE), 0),
        pools(LARGE_POOL, (units) => (units < ORDER_STRETCH ? 0 : LARGE), ORDER_STRETCH),
      ];
    case 'shoes':
      return DECKS.map((decks, place) =>
        group<readonly Uint8Array[]>({
          tests: shuffleTests(shoeOf(decks)),
          draw: (units, seedOf) =>
            Array.from({ length: Math.floor((units + 1 - place) / 2) }, (_, i) =>
              shuffleShoe(decks, seedOf(2 * i + place)),
            ),
        }),
      );
  }
}

/** Lists the tests of a subject, in the order of their counts in the result. */
export const testsOf = (of: Of, sheet: ParSheet): RandomTest<unknown>[] =>
  groupsOf(of, sheet).flatMap(({ tests }) => tests);

/**
 * Draws and counts what a task asks for. The thread pool calls this function on one of its threads.
 * @returns the counts for each test of randomness, in the order of {@link testsOf}
 */
export default function run({ of, seed, draw, first, units, sheet }: TallyTask): Float64Array[] {
  const { stretch } = SUBJECTS[of];
  const groups = groupsOf(of, sheet);
  const tests = groups.flatMap((each) => each.tests);
  const sums = tests.map(({ counters }) => new Float64Array(counters));
  for (let done = 0, number = first; done < units; done += stretch, number++) {
    const seedOf = (within: number): Uint8Array => drawSeed(of, seed, draw, number, within);
    let at = 0;
    for (const { tests: own, draw: drawn } of groups) {
      const draws = drawn(Math.min(stretch, units - done), seedOf);
      for (const test of own) tally(test, draws, sums[at++]!);
    }
  }
  return sums;
}

function tally(test: RandomTest<unknown>, draws: unknown, sum: Float64Array): void {
  if (test.isList !== true) test.tally(draws, sum);
  else {
    const counts = new Float64Array(test.counters);
    test.tally(draws, counts);
    addCounts(test, sum, counts);
  }
}

/**
 * Derives a seed from the seed of the run: SHA-256 over the domain line, the run's seed, the subject, the
 * draw, the stretch and the index within the stretch.
 */
export function drawSeed(
  of: Of,
  seed: Uint8Array,
  draw: number,
  stretch: number,
  within: number,
): Uint8Array {
  const place = Buffer.alloc(20);
  place.writeUInt32BE(draw, 0);
  place.writeBigUInt64BE(BigInt(stretch), 4);
  place.writeBigUInt64BE(BigInt(within), 12);
  return createHash('sha256')
    .update('spindle rng v1\n')
    .update(seed)
    .update(`${of}\n`)
    .update(place)
    .digest();
}

/**
 * Returns the keystream of the first words from which outcomes are drawn, as little-endian words of 32 bits.
 */
export function wordsOf(seed: Uint8Array, count: number): Uint32Array {
  const bytes = keystream(seed, 0x00).update(Buffer.alloc(count * 4));
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : Buffer.from(Uint8Array.from(bytes).buffer);
  return new Uint32Array(aligned.buffer, aligned.byteOffset, count);
}
