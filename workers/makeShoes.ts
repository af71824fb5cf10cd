/** Makes a block of shoes, on a worker thread of a piscina pool: draws a seed for each, deals it, commits to it. */
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
  /** The position in the game's sequence of the block's first shoe. */
  readonly fromIndex: number;
  readonly count: number;
}

export interface Shoes {
  /** Of each shoe, 32 bytes, in order: independent of each other, so that a seed that is revealed tells of no other shoe. */
  readonly seed: Uint8Array;
  /** Empty: the seeds are random enough to hide what is committed to. */
  readonly nonce: Uint8Array;
  /** What the deal of each shoe comes to by itself, packed, 2 bytes a shoe. */
  readonly outcomes: Uint8Array;
  /** Of all shoes' commitments. */
  readonly commitment: Uint8Array;
  /** What is kept of the tree over the shoes (blockTree.ts). */
  readonly tree: Uint8Array;
  /** Of the rules. */
  readonly mathHash: Uint8Array;
  readonly elapsedMs: number;
}

/** What the pool of threads runs: gives {@link Shoes}, whose outcomes are moved to the caller's thread, not copied. */
export default function run(task: ShoeTask): unknown {
  const shoes = makeShoes(task);
  return move({ [transferableSymbol]: shoes.outcomes.buffer, [valueSymbol]: shoes });
}

export function makeShoes(task: ShoeTask): Shoes {
  const startedMs = performance.now();
  // A copy of its own size: a slice of a pooled buffer would take the whole pool along to the other thread.
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

/** What seeds make of a block's shoes. @param seeds 32 bytes a shoe */
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
