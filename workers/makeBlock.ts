/**
 * Makes a block of outcomes on a worker thread of a piscina pool: draws a seed, draws the outcomes from it,
 * checks them and seals them. `drawBlock` (drawBlock.ts) can draw the block again from its PAR sheet and
 * seed.
 */

import { randomBytes } from 'node:crypto';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { type Distribution, packOutcomes } from '../src/domain/outcome.js';
import type { ParSheet } from '../src/domain/par.js';
import { outcomeLeaves, rootOfTree, sealTree } from '../src/domain/publicLog/blockTree.js';
import { leafKeyOf, leafNonces } from '../src/domain/publicLog/leaves.js';
import { compiledSheet, drawFrom } from './drawBlock.js';

export interface BlockTask {
  readonly sheet: ParSheet;
  readonly gameId: number;
  /** Index of the block's first outcome in the game's sequence. */
  readonly fromIndex: number;
  /** Number of outcomes in the block, 1 to 4,000,000 (drawBlock.ts). */
  readonly count: number;
}

export interface Block {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  /** Packed outcome codes of the block, `2 × count` bytes. */
  readonly outcomes: Uint8Array;
  /** Root of the tree over the block's leaves. */
  readonly commitment: Uint8Array;
  /** Stored hashes of the block's tree (blockTree.ts). */
  readonly tree: Uint8Array;
  /** Hash of the PAR sheet (mathHash.ts). */
  readonly mathHash: Uint8Array;
  /** Number of outcomes of each combination in the block. */
  readonly counts: number[];
  readonly elapsedMs: number;
}

const SEED_BYTES = 32;
const NONCE_BYTES = 32;

/**
 * Runs in the thread pool. Returns a {@link Block}, whose outcomes are moved to the caller's thread instead
 * of copied.
 */
export default function run(task: BlockTask): unknown {
  const block = makeBlock(task);
  return move({ [transferableSymbol]: block.outcomes.buffer, [valueSymbol]: block });
}

/**
 * Makes and seals one block.
 * @throws RangeError if the task is out of range; Error if the block fails its check
 */
export function makeBlock({ sheet, gameId, fromIndex, count }: BlockTask): Block {
  const startedMs = performance.now();
  // The buffers are copies of the exact size, because a slice of a pooled buffer would transfer the whole
  // buffer pool to the other thread.
  const seed = Uint8Array.from(randomBytes(SEED_BYTES));
  const nonce = Uint8Array.from(randomBytes(NONCE_BYTES));
  const { distribution, mathHash } = compiledSheet(sheet);
  const drawn = drawFrom(distribution, seed, count);
  const counts = checkOutcomes(distribution, drawn, count);
  const outcomes = packOutcomes(drawn);
  const tree = treeOf({ gameId, fromIndex, nonce, codes: drawn });
  const commitment = Uint8Array.from(rootOfTree(tree));
  const elapsedMs = performance.now() - startedMs;
  return { seed, nonce, outcomes, commitment, tree, mathHash, counts, elapsedMs };
}

/** Builds the Merkle tree over drawn outcomes or tickets. */
export function treeOf(block: {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly nonce: Uint8Array;
  readonly codes: Uint16Array;
}): Uint8Array {
  const key = leafKeyOf({ ...block, nonce: Buffer.from(block.nonce) });
  return sealTree(outcomeLeaves({ ...block, nonces: (first, count) => leafNonces(key, count, first) }));
}

/**
 * Counts each combination of the PAR sheet and refuses impossible outcomes. Frequencies are not checked,
 * because refusing an unlikely block would change the distribution.
 */
function checkOutcomes({ cumulative }: Distribution, outcomes: Uint16Array, count: number): number[] {
  if (outcomes.length !== count)
    throw new Error(`the draw has ${outcomes.length} outcomes instead of ${count}`);
  const counts = new Uint32Array(1 << 16);
  for (let i = 0; i < outcomes.length; i++) counts[outcomes[i]!]!++;
  let known = 0;
  cumulative.forEach((end, index) => {
    const isPossible = end > (cumulative[index - 1] ?? 0n);
    if (isPossible) known += counts[index]!;
  });
  if (known !== count)
    throw new Error(`the draw has ${count - known} outcomes that are not on the PAR sheet`);
  return Array.from(counts.subarray(0, cumulative.length));
}
