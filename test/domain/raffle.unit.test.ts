/**
 * Tests prize tables and pools: exact numbers of prizes, fair shuffles, commitments that cover everything,
 * and proofs that detect every change.
 */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  checkPrizeTable,
  type PrizeTableUsd,
  prizeTableText,
  prizeTableUsd,
  readPrizeTable,
  renderPrizeTable,
} from '../../src/domain/games/prizeTable.js';
import {
  countFault,
  poolCommitment,
  poolFaults,
  type RevealedPool,
  shufflePool,
} from '../../src/domain/games/rafflePool.js';
import { sealRaffle } from '../../workers/sealRaffle.js';
import { expectRatioBelow, expectWithin, leastCostMs } from '../support/expectWithin.js';

const prize = (prizeTier: number, valueUsd: number, count: number, prizeName = `Prize ${prizeTier}`) => ({
  prizeName,
  prizeTier,
  valueUsd,
  count,
});
const TABLE: PrizeTableUsd = {
  ticketPriceUsd: 2.5,
  poolSize: 20,
  prizes: [prize(6, 1000, 1), prize(3, 10, 2), prize(3, 7.5, 1, 'Mug'), prize(1, 2.5, 4)],
};
/** Returns 32 bytes, which are different for each number. */
const seedOf = (number: number | string): Buffer => createHash('sha256').update(`seed ${number}`).digest();

const arbitraryTable = fc
  .record({
    price: fc.integer({ min: 1, max: 1_000_000_000_000 }),
    spare: fc.integer({ min: 0, max: 50 }),
    prizes: fc.array(
      fc.record({
        prizeName: fc.string({ minLength: 1, maxLength: 20 }).filter((name) => name !== 'No Win'),
        prizeTier: fc.integer({ min: 1, max: 6 }),
        micros: fc.integer({ min: 1, max: 3_000_000_000_000 }),
        count: fc.integer({ min: 1, max: 40 }),
      }),
      { minLength: 1, maxLength: 8 },
    ),
  })
  .map(({ price, spare, prizes }) => ({
    ticketPriceMicros: price,
    poolSize: prizes.reduce((sum, { count }) => sum + count, spare),
    prizes: prizes.map(({ micros, ...rest }) => ({ ...rest, valueMicros: micros })),
  }));

/**
 * Computes the upper tail of the chi-square distribution by the Wilson–Hilferty approximation and the
 * complementary error function.
 */
function chiSquareTail(statistic: number, degrees: number): number {
  const z = ((statistic / degrees) ** (1 / 3) - (1 - 2 / (9 * degrees))) / Math.sqrt(2 / (9 * degrees));
  const t = 1 / (1 + 0.3275911 * (Math.abs(z) / Math.SQRT2));
  // Formula 7.1.26 of Abramowitz and Stegun, accurate to 1.5e-7.
  const erfc =
    t *
    Math.exp((-z * z) / 2) *
    (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return z >= 0 ? erfc / 2 : 1 - erfc / 2;
}

describe('prize tables of raffles', () => {
  test('converts a prize table from micro-USD to USD and back exactly', () => {
    fc.assert(
      fc.property(arbitraryTable, (table) => {
        expect(readPrizeTable(JSON.parse(prizeTableText(prizeTableUsd(table))))).toEqual(table);
      }),
    );
  });

  test('rejects a prize table and reports every fault of its numbers', () => {
    const checked = checkPrizeTable({
      ticketPriceUsd: 0,
      poolSize: 3,
      prizes: [prize(1, -1, 2), prize(2, 0.0000001, 1), prize(3, 1e17, 1, 'No Win')],
    });
    expect('faults' in checked && checked.faults.map(({ path }) => path)).toEqual([
      '/ticketPriceUsd',
      '/prizes/0/valueUsd',
      '/prizes/1/valueUsd',
      '/prizes/2/prizeName',
      '/prizes/2/valueUsd',
      '/prizes',
    ]);
  });

  test('rejects a prize table with more money than a JSON number can express exactly', () => {
    const most = { ticketPriceUsd: 1000, poolSize: 1_000_000, prizes: [prize(1, 999_999_999.999999, 1)] };
    expect(readPrizeTable(most).prizes[0]!.valueMicros).toBe(999_999_999_999_999);
    const more = { ...most, ticketPriceUsd: 1000.000001, prizes: [prize(1, 500_000_000.000001, 2)] };
    const checked = checkPrizeTable(more);
    expect('faults' in checked && checked.faults.map(({ path }) => path)).toEqual([
      '/prizes',
      '/ticketPriceUsd',
    ]);
  });

  test('writes a prize table as RFC 8785 canonical JSON, with sorted members and no spaces', () => {
    const table = { ticketPriceUsd: 0.1, poolSize: 1, prizes: [prize(1, 1e6, 1, 'Ümlaut "x"')] };
    expect(prizeTableText(table)).toBe(
      '{"poolSize":1,"prizes":[{"count":1,"prizeName":"Ümlaut \\"x\\"","prizeTier":1,"valueUsd":1000000}],"ticketPriceUsd":0.1}',
    );
  });

  test('renders raffle prizes as the contract says (docs/contract.md §9.3)', () => {
    const rendered = renderPrizeTable(readPrizeTable(TABLE));
    const shown = rendered.combinations.map(({ json }) => JSON.parse(`{${json}}`));
    expect(rendered.wagerMicros).toBe(2_500_000);
    expect(rendered.maxPayoutMicros).toBe(1_000_000_000);
    const raffle = (prizeName: string, prizeTier: number, celebrationTier: string) => ({
      type: 'raffle',
      prizeName,
      prizeTier,
      celebrationTier,
    });
    expect(shown.map(({ presentation }) => presentation)).toEqual([
      raffle('No Win', 0, 'none'),
      raffle('Prize 6', 6, 'jackpot'),
      raffle('Prize 3', 3, 'medium'),
      raffle('Mug', 3, 'medium'),
      // A prize that pays exactly the price of the ticket.
      raffle('Prize 1', 1, 'none'),
    ]);
    expect(shown[3].outcome).toEqual({ prizeTier: 3, payoutUsd: 7.5, isBonusTrigger: false });
  });
});

describe('pools of raffle tickets', () => {
  test('shuffles a raffle pool with each prize exactly as often as its table says', () => {
    fc.assert(
      fc.property(arbitraryTable, fc.integer(), (table, number) => {
        const order = shufflePool(table, seedOf(number));
        expect(countFault(prizeTableUsd(table), order)).toBeUndefined();
      }),
    );
  });

  test('finds a raffle pool with one prize more than its table says', () => {
    const order = shufflePool(TABLE, seedOf(1));
    order[order.indexOf(0)] = 1;
    expect(countFault(TABLE, order)).toMatch(/code 0.* is on 11 tickets, but the prize table has 12/);
    expect(countFault(TABLE, order.subarray(1))).toMatch(/has 19 tickets/);
  });

  test('puts each raffle prize at each position equally often: 2,000 pools, p > 0.001 for each tier', () => {
    const pools = 2000;
    const tiers = [0, ...TABLE.prizes.map(({ prizeTier }) => prizeTier)];
    const found = new Map<number, Float64Array>();
    for (let pool = 0; pool < pools; pool++) {
      shufflePool(TABLE, seedOf(pool)).forEach((code, place) => {
        const tier = tiers[code]!;
        const places = found.get(tier) ?? new Float64Array(TABLE.poolSize);
        found.set(tier, places);
        places[place]!++;
      });
    }
    expect([...found.keys()].sort()).toEqual([0, 1, 3, 6]);
    for (const [tier, places] of found) {
      const tickets = places.reduce((sum, count) => sum + count, 0);
      const expected = tickets / TABLE.poolSize;
      // Each pool draws without replacement, so the variance of the count at a position is smaller by this
      // factor.
      const share = tickets / pools / TABLE.poolSize;
      const factor = ((1 - share) * TABLE.poolSize) / (TABLE.poolSize - 1);
      const statistic = places.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0) / factor;
      expect(chiSquareTail(statistic, TABLE.poolSize - 1), `tier ${tier}: ${statistic}`).toBeGreaterThan(
        0.001,
      );
    }
  });

  test('shuffles a small raffle pool into each order equally often: all 24 orders of 4 tickets, p > 0.001', () => {
    const table = { poolSize: 4, prizes: [{ count: 1 }, { count: 1 }, { count: 1 }] };
    const found = new Map<string, number>();
    const pools = 24_000;
    for (let pool = 0; pool < pools; pool++) {
      const order = shufflePool(table, seedOf(`small ${pool}`)).join();
      found.set(order, (found.get(order) ?? 0) + 1);
    }
    expect(found.size).toBe(24);
    const statistic = [...found.values()].reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
    expect(chiSquareTail(statistic, 23)).toBeGreaterThan(0.001);
  });

  test('shuffles raffle pools of the same table independently of each other', () => {
    const size = 20_000;
    const table = { poolSize: size, prizes: [{ count: size / 2 }] };
    const correlations = Array.from({ length: 50 }, (_, pool) => {
      const a = shufflePool(table, seedOf(`a ${pool}`));
      const b = shufflePool(table, seedOf(`b ${pool}`));
      const both = a.reduce((sum, code, place) => sum + code * b[place]!, 0);
      // For independent pools, the correlation has a normal distribution with mean 0 and standard deviation
      // 1.
      return (both - size / 4) / Math.sqrt((size * size) / 16 / (size - 1));
    });
    const mean = correlations.reduce((sum, z) => sum + z, 0) / 50;
    const square = correlations.reduce((sum, z) => sum + z * z, 0) / 50;
    expect(Math.abs(mean)).toBeLessThan(3.3 / Math.sqrt(50));
    expect(Math.max(...correlations.map(Math.abs))).toBeLessThan(4.2);
    expect(square).toBeGreaterThan(0.4);
    expect(square).toBeLessThan(1.9);
  });

  test('seals each raffle pool with new randomness of the operating system', () => {
    const task = { gameId: 7, table: TABLE };
    const pools = Array.from({ length: 50 }, () => sealRaffle(task));
    for (const member of ['seed', 'nonce', 'commitment'] as const) {
      expect(new Set(pools.map((pool) => Buffer.from(pool[member]).toString('hex'))).size).toBe(50);
    }
    expect(new Set(pools.map(({ outcomes }) => Buffer.from(outcomes).toString('hex'))).size).toBeGreaterThan(
      45,
    );
  });

  test('seals a raffle pool of a million tickets in 2 MB, in time that grows no faster than the pool', async () => {
    const seal = (poolSize: number) =>
      sealRaffle({
        gameId: 1,
        table: { ...TABLE, poolSize, prizes: [prize(6, 1000, 10), prize(1, 5, poolSize / 10 - 10)] },
      });
    const million = (): void => expect(seal(1_000_000).outcomes.byteLength).toBe(2_000_000);
    expectWithin(await leastCostMs(million, 1), 1000);
    const cost = { of: () => seal(200_000), against: () => seal(25_000) };
    await expectRatioBelow(cost, 2 * 8, 'a pool of 200,000');
  });
});

describe('proofs of raffle pools', () => {
  const revealed = (): RevealedPool => {
    const pool = sealRaffle({ gameId: 7, table: TABLE });
    const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
    return {
      gameConfigId: 7,
      ...TABLE,
      poolCommitment: hex(pool.commitment),
      reveal: {
        seed: hex(pool.seed),
        nonce: hex(pool.nonce),
        order: Buffer.from(pool.outcomes).toString('base64'),
      },
    };
  };

  test('verifies the proof of a raffle pool that was sealed', () => {
    expect(poolFaults(revealed())).toEqual([]);
  });

  const flipped = (hex: string): string => (hex.startsWith('0') ? '1' : '0') + hex.slice(1);
  const CHANGES: Record<string, (pool: RevealedPool) => RevealedPool> = {
    'another game': (pool) => ({ ...pool, gameConfigId: 8 }),
    'another price': (pool) => ({ ...pool, ticketPriceUsd: 2.500001 }),
    'another value': (pool) => ({ ...pool, prizes: [prize(6, 999, 1), ...pool.prizes.slice(1)] }),
    'another tier': (pool) => ({ ...pool, prizes: [prize(5, 1000, 1), ...pool.prizes.slice(1)] }),
    'another name': (pool) => ({ ...pool, prizes: [prize(6, 1000, 1, 'Car'), ...pool.prizes.slice(1)] }),
    'another count': (pool) => ({ ...pool, prizes: [prize(6, 1000, 2), ...pool.prizes.slice(1)] }),
    'prizes in another order': (pool) => ({ ...pool, prizes: [...pool.prizes].reverse() }),
    'a ticket more': (pool) => ({ ...pool, poolSize: 21 }),
    'another commitment': (pool) => ({ ...pool, poolCommitment: flipped(pool.poolCommitment) }),
    'another seed': (pool) => ({ ...pool, reveal: { ...pool.reveal, seed: flipped(pool.reveal.seed) } }),
    'another nonce': (pool) => ({ ...pool, reveal: { ...pool.reveal, nonce: flipped(pool.reveal.nonce) } }),
    'a nonce that is too short': (pool) => ({ ...pool, reveal: { ...pool.reveal, nonce: 'ff' } }),
    'two tickets that change places': (pool) => {
      const order = Buffer.from(pool.reveal.order, 'base64');
      const codes = new Uint16Array(Uint8Array.from(order).buffer);
      const other = codes.findIndex((code) => code !== codes[0]);
      [codes[0], codes[other]] = [codes[other]!, codes[0]!];
      return { ...pool, reveal: { ...pool.reveal, order: Buffer.from(codes.buffer).toString('base64') } };
    },
    'half a ticket': (pool) => ({ ...pool, reveal: { ...pool.reveal, order: 'AAAA' } }),
  };
  test.each(Object.entries(CHANGES))('the proof of a raffle pool fails for %s', (_what, change) => {
    expect(poolFaults(change(revealed()))).not.toEqual([]);
  });

  test('the proof of a raffle pool fails for a committed order that does not follow from its seed', () => {
    const pool = revealed();
    const order = Buffer.from(shufflePool(TABLE, seedOf('mine')).buffer);
    const seed = Buffer.from(pool.reveal.seed, 'hex');
    const nonce = Buffer.from(pool.reveal.nonce, 'hex');
    const commitment = poolCommitment({ gameId: 7, table: TABLE, seed, nonce, order }).toString('hex');
    const forged = {
      ...pool,
      poolCommitment: commitment,
      reveal: { ...pool.reveal, order: order.toString('base64') },
    };
    expect(poolFaults(forged)).toEqual([expect.stringMatching(/computed from the seed/)]);
  });
});
