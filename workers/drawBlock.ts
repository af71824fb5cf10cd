/**
 * Draws the outcomes of a block from its PAR sheet and seed. The outcomes are drawn when the block is made,
 * and again when they must be proven or have been removed.
 *
 * The seed is an AES-256 key. It gives two keystreams in counter mode, whose counters start 2^127 apart. One
 * keystream has the first word of each draw (16 bits, little-endian), and the other the words that extend a
 * draw (64 bits each, little-endian).
 */
import { type Cipher, createCipheriv, createHash } from 'node:crypto';
import {
  compileDistribution,
  type Distribution,
  drawOutcomes,
  unpackOutcomes,
} from '../src/domain/outcome.js';
import type { ParSheet } from '../src/domain/par.js';
import { sheetHash } from '../src/domain/publicLog/mathHash.js';

export const MAX_BLOCK_OUTCOMES = 4_000_000;

const SLOW_WORD_BYTES = 8;
const FAST_CHUNK = Buffer.alloc(64 * 1024);
const SLOW_CHUNK = Buffer.alloc(1024);
const COMPILED_SHEETS_MAX = 32;

/** Returns the outcomes of a block. They are determined by its PAR sheet, seed and length. */
export function drawBlock(sheet: ParSheet, seed: Uint8Array, count: number): Uint16Array {
  return drawFrom(compiledSheet(sheet).distribution, seed, count);
}

/**
 * Draws outcomes from a compiled PAR sheet.
 * @throws RangeError if the count is out of range
 */
export function drawFrom(distribution: Distribution, seed: Uint8Array, count: number): Uint16Array {
  if (!Number.isInteger(count) || count < 1 || count > MAX_BLOCK_OUTCOMES) {
    throw new RangeError(`a block must have 1 to ${MAX_BLOCK_OUTCOMES} outcomes, not ${count}`);
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

/**
 * Returns a keystream of a seed. The value 0x00 selects the keystream of first words, and 0x80 that of the
 * words that extend a draw.
 */
export function keystream(seed: Uint8Array, firstCounterByte: 0x00 | 0x80): Cipher {
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

interface CompiledSheet {
  readonly distribution: Distribution;
  readonly mathHash: Uint8Array;
}
// Cache of compiled PAR sheets, the least recently used first.
const compiledSheets = new Map<string, CompiledSheet>();

/** Returns the distribution and the hash of a PAR sheet. */
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
