/**
 * Seals the pool of a raffle on a worker thread of a piscina pool: draws a seed and a nonce, shuffles the
 * tickets, counts the prizes and commits to the pool.
 */
import { randomBytes } from 'node:crypto';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { type PrizeTableUsd, prizeTableText } from '../src/domain/games/prizeTable.js';
import {
  countFault,
  NONCE_BYTES,
  poolCommitment,
  SEED_BYTES,
  shufflePool,
} from '../src/domain/games/rafflePool.js';
import { packOutcomes } from '../src/domain/outcome.js';
import { tableHash } from '../src/domain/publicLog/mathHash.js';
import { treeOf } from './makeBlock.js';

export interface SealTask {
  readonly gameId: number;
  readonly table: PrizeTableUsd;
}

export interface Pool {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  /** Packed ticket codes of the pool, 2 bytes each. */
  readonly outcomes: Uint8Array;
  readonly commitment: Uint8Array;
  /** Stored hashes of the tree over the tickets (blockTree.ts). */
  readonly tree: Uint8Array;
  /** Hash of the prize table (mathHash.ts). */
  readonly mathHash: Uint8Array;
  readonly elapsedMs: number;
}

/**
 * Runs in the thread pool. Returns a {@link Pool}, whose tickets are moved to the caller's thread instead of
 * copied.
 */
export default function run(task: SealTask): unknown {
  const pool = sealRaffle(task);
  return move({ [transferableSymbol]: pool.outcomes.buffer, [valueSymbol]: pool });
}

/** @throws Error if the pool does not have each prize exactly as often as advertised */
export function sealRaffle({ gameId, table }: SealTask): Pool {
  const startedMs = performance.now();
  // The buffers are copies of the exact size, because a slice of a pooled buffer would transfer the whole
  // buffer pool to the other thread.
  const seed = Uint8Array.from(randomBytes(SEED_BYTES));
  const nonce = Uint8Array.from(randomBytes(NONCE_BYTES));
  const tickets = shufflePool(table, seed);
  const fault = countFault(table, tickets);
  if (fault !== undefined) throw new Error(`The drawn pool is wrong: ${fault}`);
  const outcomes = packOutcomes(tickets);
  const commitment = Uint8Array.from(poolCommitment({ gameId, table, seed, nonce, order: outcomes }));
  const tree = treeOf({ gameId, fromIndex: 0, nonce, codes: tickets });
  const mathHash = Uint8Array.from(tableHash(prizeTableText(table)));
  return { seed, nonce, outcomes, commitment, tree, mathHash, elapsedMs: performance.now() - startedMs };
}
