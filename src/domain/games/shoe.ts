/**
 * A shoe of shuffled decks: its order, which a 32-byte seed determines, and the commitment that is published
 * before it is dealt. docs/blackjack.md describes both byte by byte, so that others can check a shoe without
 * this code.
 */
import { createCipheriv, createHash } from 'node:crypto';
import { DECK_CARDS } from './cards.js';

export const SHOE_SEED_BYTES = 32;
const COMMITMENT_DOMAIN = 'spindle blackjack shoe v1\n';
const BLOCK_DOMAIN = 'spindle blackjack shoes v1\n';
/**
 * Length of the keystream, in bytes, that suffices for most shuffles of eight decks: 415 words, and further
 * words in place of rejected ones.
 */
const KEYSTREAM_BYTES = 2560;
const ZEROS = Buffer.alloc(KEYSTREAM_BYTES);

/**
 * Returns the cards of a shoe in dealing order. It is a Fisher–Yates shuffle from the last position down.
 * Each position is drawn from 32-bit words of the seed's AES-256-CTR keystream (counter from 0, little
 * endian), masked to the bits of the position. A word above the position is rejected, so that every order is
 * equally likely.
 * @param decks number of decks, 1..8, in the order of their codes before the shuffle
 * @throws RangeError for a seed of another length
 */
export function shuffleShoe(decks: number, seed: Uint8Array): Uint8Array {
  assertSeed(seed);
  const cards = new Uint8Array(decks * DECK_CARDS);
  for (let i = 0; i < cards.length; i++) cards[i] = i % DECK_CARDS;
  const cipher = createCipheriv('aes-256-ctr', seed, Buffer.alloc(16));
  let words = cipher.update(ZEROS);
  let at = 0;
  const next = (mask: number): number => {
    if (at === words.length) {
      words = cipher.update(ZEROS);
      at = 0;
    }
    at += 4;
    return words.readUInt32LE(at - 4) & mask;
  };
  for (let i = cards.length - 1; i > 0; i--) {
    const mask = 2 ** (32 - Math.clz32(i)) - 1;
    let j = next(mask);
    while (j > i) j = next(mask);
    const card = cards[i]!;
    cards[i] = cards[j]!;
    cards[j] = card;
  }
  return cards;
}

export interface SealedShoe {
  readonly gameId: number;
  /** Index of the shoe in the game's sequence of shoes. */
  readonly index: number;
  /** SHA-256 of the game's rules (blackjackRules.ts). */
  readonly rulesHash: Uint8Array;
  readonly seed: Uint8Array;
}

/**
 * Computes the commitment of a shoe: SHA-256 over the domain line, game id (u32, big endian), index (u64, big
 * endian), rules hash and seed. All members have a fixed length, so no two shoes have the same input. The
 * seed has 256 random bits, so the commitment reveals nothing about the cards.
 * @throws RangeError for a seed or hash of another length
 */
export function shoeCommitment({ gameId, index, rulesHash, seed }: SealedShoe): Buffer {
  assertSeed(seed);
  if (rulesHash.byteLength !== 32) throw new RangeError('the rules hash must be 32 bytes');
  const position = Buffer.alloc(12);
  position.writeUInt32BE(gameId, 0);
  position.writeBigUInt64BE(BigInt(index), 4);
  return createHash('sha256')
    .update(COMMITMENT_DOMAIN)
    .update(position)
    .update(rulesHash)
    .update(seed)
    .digest();
}

/**
 * Computes the commitment of a block of shoes: SHA-256 over its domain line and the commitments of the shoes
 * in order.
 */
export function shoesCommitment(commitments: readonly Uint8Array[]): Buffer {
  const digest = createHash('sha256').update(BLOCK_DOMAIN);
  for (const commitment of commitments) digest.update(commitment);
  return digest.digest();
}

function assertSeed(seed: Uint8Array): void {
  if (seed.byteLength !== SHOE_SEED_BYTES) throw new RangeError(`the seed must be ${SHOE_SEED_BYTES} bytes`);
}
