/**
 * Makes a block of shoes on a worker thread of a piscina pool: draws a seed for each shoe, deals the shoe and
 * commits to it.
 */
import { randomBytes } from 'node:crypto';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { type BlackjackRules, rulesHash } from '../src/domain/games/blackjackRules.js';
import { SHOE_SEED_BYTES, shoeCommitment, shoesCommitment, shuffleShoe } from '../src/domain/games/shoe.js';
import { dealCode } from '../src/domain/games/table.js';
import { packOutcomes } from '../src/domain/outcome.js';
import { sealTree, shoeLeaves } from '../src/domain/publicLog/blockTree.js';

export interface ShoeTask {
  readonly gameId: number;
  readonly rules: BlackjackRules;
  /** Index of the block's first shoe in the game's sequence. */
  readonly fromIndex: number;
  readonly count: number;
}

export interface Shoes {
  /**
   * Seed of each shoe in order, 32 bytes each. The seeds are independent, so a revealed seed discloses
   * nothing about other shoes.
   */
  readonly seed: Uint8Array;
  /** Nonce of the block's commitment. It is empty, because the random seeds already hide the cards. */
  readonly nonce: Uint8Array;
  /** Outcome code of each shoe's deal, packed, 2 bytes each. */
  readonly outcomes: Uint8Array;
  /** Commitment of the block, which covers the commitments of all its shoes. */
  readonly commitment: Uint8Array;
  /** Stored hashes of the tree over the shoes (blockTree.ts). */
  readonly tree: Uint8Array;
  /** Hash of the table's rules. */
  readonly mathHash: Uint8Array;
  readonly elapsedMs: number;
}

/**
 * Runs in the thread pool. Returns {@link Shoes}, whose outcomes are moved to the caller's thread instead of
 * copied.
 */
export default function run(task: ShoeTask): unknown {
  const shoes = makeShoes(task);
  return move({ [transferableSymbol]: shoes.outcomes.buffer, [valueSymbol]: shoes });
}

export function makeShoes(task: ShoeTask): Shoes {
  const startedMs = performance.now();
  // The buffer is a copy of the exact size, because a slice of a pooled buffer would transfer the whole
  // buffer pool to the other thread.
  const seed = Uint8Array.from(randomBytes(task.count * SHOE_SEED_BYTES));
  const { codes, commitments } = dealShoes(task, seed);
  return {
    seed,
    nonce: new Uint8Array(0),
    outcomes: packOutcomes(codes),
    commitment: Uint8Array.from(shoesCommitment(commitments)),
    tree: sealTree(shoeLeaves(task.gameId, task.fromIndex, commitments)),
    mathHash: Uint8Array.from(rulesHash(task.rules)),
    elapsedMs: performance.now() - startedMs,
  };
}

/**
 * Deals the shoes of a block from their seeds.
 * @param seeds 32 bytes per shoe
 */
export function dealShoes(
  { gameId, rules, fromIndex }: Omit<ShoeTask, 'count'>,
  seeds: Uint8Array,
): { codes: Uint16Array; commitments: Buffer[] } {
  const count = seeds.length / SHOE_SEED_BYTES;
  const hash = rulesHash(rules);
  const codes = new Uint16Array(count);
  const commitments: Buffer[] = [];
  for (let i = 0; i < count; i++) {
    const seed = seeds.subarray(i * SHOE_SEED_BYTES, (i + 1) * SHOE_SEED_BYTES);
    codes[i] = dealCode(rules, shuffleShoe(rules.decks, seed));
    commitments.push(shoeCommitment({ gameId, index: fromIndex + i, rulesHash: hash, seed }));
  }
  return { codes, commitments };
}
