/**
 * The pool of a raffle's tickets: how it is shuffled and sealed, and what anybody needs to check it.
 *
 * A ticket is a code: 0 is no win, n is the n-th prize of the table. The pool begins as all tickets of the first prize, then
 * those of the second, …, then the no-win tickets. A seed of 32 bytes, the operating system's randomness, decides the order:
 *
 *   keystream  AES-256 in counter mode, the seed its key, the counter beginning at 0; read as 32-bit words, little endian
 *   shuffle    Fisher–Yates: for i from the last place down to 1, a place j of 0…i; i and j change places
 *   draw of j  the next word's low bits, as many as i has; one above i is thrown away and the next word is taken
 *
 * So each order is as likely as any other, and whoever is given the seed can repeat it. The commitment is published when the
 * pool is sealed; seed, nonce and order when the last ticket is sold (docs/contract.md §10).
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

/** The order of a pool, which its table and seed decide. */
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

/** The keystream of a seed, as 32-bit words, little endian. */
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
  /** 32 random bytes: without them a table of few orders could be tried. */
  readonly nonce: Uint8Array;
  /** The ticket codes in the order in which they are dealt, 16 bits each, little endian. */
  readonly order: Uint8Array;
}

/**
 * SHA-256 over the domain line, nonce, seed, gameId (u32, big endian), SHA-256 of {@link prizeTableText} as UTF-8, and the
 * order. Every member but the last is of fixed length, so no two pools share one text.
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

/** How often the pool has each prize that the table has; undefined: exactly as often as it should. */
export function countFault({ poolSize, prizes }: PrizeTableUsd, order: Uint16Array): string | undefined {
  if (order.length !== poolSize) return `the order has ${order.length} tickets, the table ${poolSize}`;
  const counts = new Uint32Array(65_536);
  for (let i = 0; i < order.length; i++) counts[order[i]!]!++;
  const winning = prizes.reduce((sum, { count }) => sum + count, 0);
  const expected = [poolSize - winning, ...prizes.map(({ count }) => count)];
  for (const [code, count] of expected.entries()) {
    if (counts[code] !== count) {
      const name = code === 0 ? NO_WIN : prizes[code - 1]!.prizeName;
      return `«${name}» (code ${code}) is on ${counts[code]} tickets, the table says ${count}`;
    }
  }
  return undefined;
}

/** What `GET /games/{id}/pool` gives of a closed raffle, as far as it takes part in the proof. */
export interface RevealedPool extends PrizeTableUsd {
  readonly gameConfigId: number;
  /** Hexadecimal. */
  readonly poolCommitment: string;
  readonly reveal: Static<typeof PoolReveal>;
}

/** Everything that is wrong with a revealed pool; empty where it is what was committed to, and fairly shuffled. */
export function poolFaults(pool: RevealedPool): string[] {
  const { gameConfigId, poolSize, ticketPriceUsd, prizes, reveal } = pool;
  const table = { ticketPriceUsd, poolSize, prizes };
  const seed = Buffer.from(reveal.seed, 'hex');
  const nonce = Buffer.from(reveal.nonce, 'hex');
  const order = Buffer.from(reveal.order, 'base64');
  const faults: string[] = [];
  if (seed.length !== SEED_BYTES) faults.push(`the seed has ${seed.length} bytes, not ${SEED_BYTES}`);
  if (nonce.length !== NONCE_BYTES) faults.push(`the nonce has ${nonce.length} bytes, not ${NONCE_BYTES}`);
  if (order.length % 2 !== 0) faults.push('the order has half a ticket');
  const checked = checkPrizeTable(table);
  if ('faults' in checked) faults.push(...checked.faults.map(({ path, message }) => `${path} ${message}`));
  if (faults.length > 0) return faults;
  const tickets = unpackOutcomes(order);
  const wrongCount = countFault(table, tickets);
  if (wrongCount !== undefined) faults.push(wrongCount);
  const committed = poolCommitment({ gameId: gameConfigId, table, seed, nonce, order }).toString('hex');
  if (committed !== pool.poolCommitment) {
    faults.push(`the commitment of these members is ${committed}, not ${pool.poolCommitment}`);
  }
  const shuffled = shufflePool(table, seed);
  const place = shuffled.findIndex((code, i) => code !== tickets[i]);
  if (place >= 0) {
    faults.push(
      `the seed gives another order: place ${place} has code ${shuffled[place]}, not ${tickets[place]}`,
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
    seed: Type.String({ description: 'Hexadecimal, 32 bytes: the key of the shuffle' }),
    nonce: Type.String({ description: 'Hexadecimal, 32 bytes' }),
    order: Type.String({
      description: 'Base64: the ticket codes as they were dealt, 16 bits each, little endian',
    }),
  },
  { description: 'Null until the last ticket is sold, or the raffle is voided and its last ticket booked' },
);
