/**
 * Shuffles and seals the pool of a raffle's tickets, and checks a revealed pool.
 *
 * Each ticket has a code: 0 is no win, n is the n-th prize of the table. The unshuffled pool has all tickets
 * of the first prize, then those of the second, …, then the no-win tickets. A seed of 32 bytes from the
 * operating system's random generator decides the order:
 *
 *   keystream  AES-256 in counter mode, keyed by the seed, counter from 0; 32-bit little-endian words
 *   shuffle    Fisher–Yates: for i from the last position down to 1, a position j of 0…i; swap i and j
 *   draw of j  the low bits of the next word, as many as i has; if above i, take the next word
 *
 * So each order is equally likely, and anyone with the seed can repeat the shuffle. The commitment is
 * published when the pool is sealed; seed, nonce and order are published when the last ticket is sold
 * (docs/contract.md §10).
 */
import { createCipheriv, createHash } from 'node:crypto';
import { type Static, Type } from '#typebox';
import { unpackOutcomes } from '../outcome.js';
import {
  checkPrizeTable,
  NO_WIN,
  type Prize,
  type PrizeTable,
  type PrizeTableUsd,
  prizeTableText,
} from './prizeTable.js';

export const SEED_BYTES = 32;
export const NONCE_BYTES = 32;
const COMMITMENT_DOMAIN = 'spindle pool v1\n';
const KEYSTREAM_BYTES = 64 * 1024;

/** Returns the order of a pool, which its prize table and seed determine. */
export function shufflePool(
  { poolSize, prizes }: Pick<PrizeTable, 'poolSize'> & { prizes: readonly Pick<Prize, 'count'>[] },
  seed: Uint8Array,
): Uint16Array {
  const order = new Uint16Array(poolSize);
  let at = 0;
  prizes.forEach(({ count }, place) => {
    order.fill(place + 1, at, at + count);
    at += count;
  });
  if (at > poolSize) throw new RangeError('the prizes have more tickets than the pool');
  const next = words(seed);
  for (let i = poolSize - 1; i > 0; i--) {
    const mask = 2 ** (32 - Math.clz32(i)) - 1;
    let j = next() & mask;
    while (j > i) j = next() & mask;
    const ticket = order[i]!;
    order[i] = order[j]!;
    order[j] = ticket;
  }
  return order;
}

/** Returns a reader of the seed's keystream, as 32-bit little-endian words. */
function words(seed: Uint8Array): () => number {
  if (seed.byteLength !== SEED_BYTES) throw new RangeError(`the seed must be ${SEED_BYTES} bytes`);
  const cipher = createCipheriv('aes-256-ctr', seed, Buffer.alloc(16));
  const zeros = Buffer.alloc(KEYSTREAM_BYTES);
  let chunk = Buffer.alloc(0);
  let at = 0;
  return () => {
    if (at === chunk.length) {
      chunk = cipher.update(zeros);
      at = 0;
    }
    at += 4;
    return chunk.readUInt32LE(at - 4);
  };
}

export interface SealedPool {
  readonly gameId: number;
  readonly table: PrizeTableUsd;
  readonly seed: Uint8Array;
  /**
   * 32 random bytes. Without them, anyone could find the order behind the commitment by trying all orders, if
   * the prize table has only a few.
   */
  readonly nonce: Uint8Array;
  /** Ticket codes in dealing order, 16 bits each, little endian. */
  readonly order: Uint8Array;
}

/**
 * Computes the commitment: SHA-256 over the domain line, nonce, seed, gameId (u32, big endian), SHA-256 of
 * {@link prizeTableText} as UTF-8, and the order. All members but the last have a fixed length, so no two
 * pools have the same input.
 * @throws RangeError for a nonce or seed of another length
 */
export function poolCommitment({ gameId, table, seed, nonce, order }: SealedPool): Buffer {
  if (nonce.byteLength !== NONCE_BYTES) throw new RangeError(`the nonce must be ${NONCE_BYTES} bytes`);
  if (seed.byteLength !== SEED_BYTES) throw new RangeError(`the seed must be ${SEED_BYTES} bytes`);
  const number = Buffer.alloc(4);
  number.writeUInt32BE(gameId);
  return createHash('sha256')
    .update(COMMITMENT_DOMAIN)
    .update(nonce)
    .update(seed)
    .update(number)
    .update(createHash('sha256').update(prizeTableText(table)).digest())
    .update(order)
    .digest();
}

/**
 * Checks that the pool has each prize exactly as often as the prize table says. Returns the first deviation,
 * or undefined.
 */
export function countFault({ poolSize, prizes }: PrizeTableUsd, order: Uint16Array): string | undefined {
  if (order.length !== poolSize)
    return `the order has ${order.length} tickets, but the prize table has ${poolSize}`;
  const counts = new Uint32Array(65_536);
  for (let i = 0; i < order.length; i++) counts[order[i]!]!++;
  const winning = prizes.reduce((sum, { count }) => sum + count, 0);
  const expected = [poolSize - winning, ...prizes.map(({ count }) => count)];
  for (const [code, count] of expected.entries()) {
    if (counts[code] !== count) {
      const name = code === 0 ? NO_WIN : prizes[code - 1]!.prizeName;
      return `«${name}» (code ${code}) is on ${counts[code]} tickets, but the prize table has ${count}`;
    }
  }
  return undefined;
}

/** Members of the response of `GET /games/{id}/pool` from which the proof of a closed raffle is made. */
export interface RevealedPool extends PrizeTableUsd {
  readonly gameConfigId: number;
  /** Commitment to the raffle's pool, in hexadecimal. */
  readonly poolCommitment: string;
  readonly reveal: Static<typeof PoolReveal>;
}

/** Lists all faults of a revealed pool. Empty if the pool matches its commitment and is fairly shuffled. */
export function poolFaults(pool: RevealedPool): string[] {
  const { gameConfigId, poolSize, ticketPriceUsd, prizes, reveal } = pool;
  const table = { ticketPriceUsd, poolSize, prizes };
  const seed = Buffer.from(reveal.seed, 'hex');
  const nonce = Buffer.from(reveal.nonce, 'hex');
  const order = Buffer.from(reveal.order, 'base64');
  const faults: string[] = [];
  if (seed.length !== SEED_BYTES) faults.push(`the seed has ${seed.length} bytes, not ${SEED_BYTES}`);
  if (nonce.length !== NONCE_BYTES) faults.push(`the nonce has ${nonce.length} bytes, not ${NONCE_BYTES}`);
  if (order.length % 2 !== 0) faults.push('the order ends in the middle of a ticket');
  const checked = checkPrizeTable(table);
  if ('faults' in checked) faults.push(...checked.faults.map(({ path, message }) => `${path} ${message}`));
  if (faults.length > 0) return faults;
  const tickets = unpackOutcomes(order);
  const wrongCount = countFault(table, tickets);
  if (wrongCount !== undefined) faults.push(wrongCount);
  const committed = poolCommitment({ gameId: gameConfigId, table, seed, nonce, order }).toString('hex');
  if (committed !== pool.poolCommitment) {
    faults.push(`the commitment computed from this pool is ${committed}, not ${pool.poolCommitment}`);
  }
  const shuffled = shufflePool(table, seed);
  const place = shuffled.findIndex((code, i) => code !== tickets[i]);
  if (place >= 0) {
    faults.push(
      `place ${place} has code ${shuffled[place]} in the order computed from the seed, not ${tickets[place]}`,
    );
  }
  return faults;
}

export const PoolPrize = Type.Object({
  prizeName: Type.String(),
  prizeTier: Type.Integer(),
  valueUsd: Type.Number(),
  count: Type.Integer(),
});

export const PoolReveal = Type.Object(
  {
    seed: Type.String({ description: 'Key of the shuffle: 32 bytes in hexadecimal' }),
    nonce: Type.String({ description: 'Hexadecimal, 32 bytes' }),
    order: Type.String({
      description:
        'Ticket codes in the order in which they are dealt: 16 bits each, little endian, in base64',
    }),
  },
  {
    description:
      'Null until the last ticket is sold. If the raffle is voided, null until its last sold ticket is committed',
  },
);
