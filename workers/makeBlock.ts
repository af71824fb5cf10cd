/**
 * Makes a block of outcomes, on a worker thread of a piscina pool: draws a seed, expands it, draws the outcomes,
 * checks them and seals them. A block can be drawn again from its sheet and seed with `drawBlock`.
 *
 * The seed is an AES-256 key. Two keystreams of it in counter mode, whose counters start 2^127 apart, give the first
 * words (16 bits each, little-endian) and the words that extend a draw (64 bits each, little-endian).
 */

import { type Cipher, createCipheriv, createHash, randomBytes } from 'node:crypto';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import {
  compileDistribution,
  type Distribution,
  drawOutcomes,
  packOutcomes,
  unpackOutcomes,
} from '../src/domain/outcome.js';
import type { ParSheet } from '../src/domain/par.js';
import { outcomeLeaves, rootOfTree, sealTree } from '../src/domain/transparency/blockTree.js';
import { leafKeyOf, leafNonces } from '../src/domain/transparency/leaves.js';
import { sheetHash } from '../src/domain/transparency/mathHash.js';

export interface BlockTask {
  readonly sheet: ParSheet;
  readonly gameId: number;
  /** The position in the game's outcome sequence of the block's first outcome. */
  readonly fromIndex: number;
  /** 1 to {@link MAX_BLOCK_OUTCOMES}. */
  readonly count: number;
}

export interface Block {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  /** Packed, `2 × count` bytes. */
  readonly outcomes: Uint8Array;
  /** The root of the tree over its leaves. */
  readonly commitment: Uint8Array;
  /** What is kept of that tree (domain/transparency/blockTree.ts). */
  readonly tree: Uint8Array;
  /** Of the sheet (domain/transparency/mathHash.ts). */
  readonly mathHash: Uint8Array;
  /** How often the block has each combination. */
  readonly counts: number[];
  readonly elapsedMs: number;
}

export const MAX_BLOCK_OUTCOMES = 4_000_000;

const SEED_BYTES = 32;
const NONCE_BYTES = 32;
const SLOW_WORD_BYTES = 8;
const FAST_CHUNK = Buffer.alloc(64 * 1024);
const SLOW_CHUNK = Buffer.alloc(1024);
const COMPILED_SHEETS_MAX = 32;

/** What the pool runs: gives a {@link Block}, whose outcomes are moved to the caller's thread, not copied. */
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
  // Copies of their own size: a slice of a pooled buffer would take the whole pool along to the other thread.
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

/** The tree over outcomes or tickets that are drawn. */
export function treeOf(block: {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly nonce: Uint8Array;
  readonly codes: Uint16Array;
}): Uint8Array {
  const key = leafKeyOf({ ...block, nonce: Buffer.from(block.nonce) });
  return sealTree(outcomeLeaves({ ...block, nonces: (first, count) => leafNonces(key, count, first) }));
}

/** The outcomes of a block, which its sheet, seed and length decide. */
export function drawBlock(sheet: ParSheet, seed: Uint8Array, count: number): Uint16Array {
  return drawFrom(compiledSheet(sheet).distribution, seed, count);
}

function drawFrom(distribution: Distribution, seed: Uint8Array, count: number): Uint16Array {
  if (!Number.isInteger(count) || count < 1 || count > MAX_BLOCK_OUTCOMES) {
    throw new RangeError(`a block has 1 to ${MAX_BLOCK_OUTCOMES} outcomes, not ${count}`);
  }
  const out = new Uint16Array(count);
  const fastStream = keystream(seed, 0x00);
  const nextSlowWord = slowWords(seed);
  const wordsPerChunk = FAST_CHUNK.byteLength / 2;
  for (let from = 0; from < count; from += wordsPerChunk) {
    const words = Math.min(wordsPerChunk, count - from);
    const fast = unpackOutcomes(fastStream.update(FAST_CHUNK.subarray(0, words * 2)));
    drawOutcomes(distribution, fast, nextSlowWord, out.subarray(from, from + words));
  }
  return out;
}

function keystream(seed: Uint8Array, firstCounterByte: number): Cipher {
  const counter = Buffer.alloc(16);
  counter[0] = firstCounterByte;
  return createCipheriv('aes-256-ctr', seed, counter);
}

function slowWords(seed: Uint8Array): () => bigint {
  const stream = keystream(seed, 0x80);
  let chunk = Buffer.alloc(0);
  let offset = 0;
  return () => {
    if (offset === chunk.byteLength) {
      chunk = stream.update(SLOW_CHUNK);
      offset = 0;
    }
    const word = chunk.readBigUInt64LE(offset);
    offset += SLOW_WORD_BYTES;
    return word;
  };
}

/**
 * Counts each combination, and refuses what can't have been drawn. It judges no frequencies: to refuse an unlikely
 * block would change the distribution.
 */
function checkOutcomes({ cumulative }: Distribution, outcomes: Uint16Array, count: number): number[] {
  if (outcomes.length !== count) throw new Error(`drew ${outcomes.length} outcomes of ${count}`);
  const counts = new Uint32Array(1 << 16);
  for (let i = 0; i < outcomes.length; i++) counts[outcomes[i]!]!++;
  let known = 0;
  cumulative.forEach((end, index) => {
    const isPossible = end > (cumulative[index - 1] ?? 0n);
    if (isPossible) known += counts[index]!;
  });
  if (known !== count) throw new Error(`drew ${count - known} outcomes that the sheet can't give`);
  return Array.from(counts.subarray(0, cumulative.length));
}

interface CompiledSheet {
  readonly distribution: Distribution;
  readonly mathHash: Uint8Array;
}
// The compiled sheets, the least recently used first.
const compiledSheets = new Map<string, CompiledSheet>();

/** A sheet's distribution and hash. */
export function compiledSheet(sheet: ParSheet): CompiledSheet {
  const key = createHash('sha256').update(JSON.stringify(sheet)).digest('base64');
  const compiled = compiledSheets.get(key) ?? {
    distribution: compileDistribution(sheet),
    mathHash: Uint8Array.from(sheetHash(sheet)),
  };
  compiledSheets.delete(key);
  compiledSheets.set(key, compiled);
  if (compiledSheets.size > COMPILED_SHEETS_MAX) {
    const leastRecent = compiledSheets.keys().next();
    if (!leastRecent.done) compiledSheets.delete(leastRecent.value);
  }
  return compiled;
}
