/** Leaves of a sealed block's tree. A leaf commits to an outcome, ticket or shoe before it can be dealt. */
import { createCipheriv } from 'node:crypto';
import { Type } from '#typebox';
import { hex } from '../schema.js';
import { sha256 } from './tree.js';

const OUTCOME = 'SPDLout1';
const SHOE = 'SPDLsho1';
const LEAF_KEY = 'spindle leaf key v1\n';
const SECRET = 'spindle secret v1\n';
const NONCE_BYTES = 32;
const COUNTER = Buffer.alloc(16);

/** Identity of an outcome: its game (u32) and its index in the game's sequence (u64). */
interface Place {
  readonly gameId: number;
  readonly index: number;
}

function headOf(name: string, { gameId, index }: Place): Buffer {
  const head = Buffer.alloc(20);
  head.write(name, 'latin1');
  head.writeUInt32BE(gameId, 8);
  head.writeBigUInt64BE(BigInt(index), 12);
  return head;
}

/**
 * @param code index of the combination in the sheet; for tickets 0 for no win, n for the n-th prize
 * @param nonce 32 bytes
 */
export function outcomeLeafData(place: Place, code: number, nonce: Buffer): Buffer {
  const packed = Buffer.alloc(2);
  packed.writeUInt16BE(code);
  return Buffer.concat([headOf(OUTCOME, place), packed, nonce]);
}

/**
 * @param commitment commitment of the shoe, 32 bytes; no nonce is needed, because the shoe's seed hides the
 * cards
 */
export const shoeLeafData = (place: Place, commitment: Buffer): Buffer =>
  Buffer.concat([headOf(SHOE, place), commitment]);

interface Sealed {
  readonly gameId: number;
  readonly fromIndex: number;
  /** Nonce of the sealed block, 32 bytes. */
  readonly nonce: Buffer;
}

/** Derives the key from which the nonces of a block's leaves are generated. */
export function leafKeyOf({ gameId, fromIndex, nonce }: Sealed): Buffer {
  const place = Buffer.alloc(12);
  place.writeUInt32BE(gameId);
  place.writeBigUInt64BE(BigInt(fromIndex), 4);
  return sha256(LEAF_KEY, nonce, place);
}

/**
 * Generates the nonces of outcomes of a block, 32 bytes each. Revealing one nonce discloses nothing about
 * another.
 * @param first index in the block, from 0
 */
export function leafNonces(key: Buffer, count: number, first = 0): Buffer {
  const counter = Buffer.from(COUNTER);
  counter.writeBigUInt64BE(BigInt(first) * 2n, 8);
  return createCipheriv('aes-256-ctr', key, counter).update(Buffer.alloc(count * NONCE_BYTES));
}

/**
 * Hash in a log entry that commits to the nonce and the seed of a block (32 bytes each) until they are
 * revealed.
 */
export const secretHash = (nonce: Buffer, seed: Buffer): Buffer => sha256(SECRET, nonce, seed);

export const ProvenOutcome = Type.Object({
  index: Type.Integer({ description: 'Index of the outcome in the sequence of its game' }),
  code: Type.Integer({
    description:
      'For a spin: index of the combination in the PAR sheet, from 0. For a raffle ticket: 0 for no win, n for the n-th prize',
  }),
  nonce: hex('Nonce that hides the outcome until it is revealed'),
});
