/**
 * Prize table of a raffle: the price and prizes of its tickets, and their validation, encoding and rendering.
 * Each ticket has a code: 0 is no win, n is the n-th prize of the table.
 */

import { type Static, Type } from '#typebox';
import type { Fault } from '../errors.js';
import { microsToUsdText, usdToMicros } from '../money.js';
import { celebrationTierOf, type RenderedSheet } from '../presentation.js';
import { rtpOf } from '../rtp.js';
import { opaque, usd } from '../schema.js';

const MAX_POOL_SIZE = 1_000_000;
/**
 * Maximum price of all tickets together, and maximum sum of all prizes, in micro-USD: 10^9 USD. Up to this
 * amount a JSON number distinguishes every micro-USD, and the sums of many raffles fit the ledger's integers.
 */
const MAX_FUND_MICROS = 1_000_000_000_000_000;
export const NO_WIN = 'No Win';

export interface Prize {
  readonly prizeName: string;
  /** Tier of the prize, 1 to 6. */
  readonly prizeTier: number;
  /** Value of the prize in micro-USD, above 0. */
  readonly valueMicros: number;
  /** Number of tickets that win the prize, at least 1. */
  readonly count: number;
}

export interface PrizeTable {
  /** Price of a ticket in micro-USD, above 0. */
  readonly ticketPriceMicros: number;
  /** Total number of tickets, 1 to {@link MAX_POOL_SIZE}. */
  readonly poolSize: number;
  readonly prizes: readonly Prize[];
}

const PRIZES_MAX = 1000;

export const RafflePrize = Type.Object({
  prizeName: opaque('Name of the prize in the response to a spin; must not be «No Win»'),
  prizeTier: Type.Integer({ minimum: 1, maximum: 6 }),
  valueUsd: usd('Value of the prize: above 0, with at most 6 decimals'),
  count: Type.Integer({
    minimum: 1,
    maximum: MAX_POOL_SIZE,
    description: 'Number of tickets that win this prize',
  }),
});

/** Prize table in USD, in the form in which requests, responses and the sealed pool contain it. */
export const PrizeTableUsd = Type.Object({
  ticketPriceUsd: usd('Price of a ticket: above 0, with at most 6 decimals'),
  poolSize: Type.Integer({
    minimum: 1,
    maximum: MAX_POOL_SIZE,
    description: 'Number of all tickets of the raffle',
  }),
  prizes: Type.Array(RafflePrize, {
    minItems: 1,
    maxItems: PRIZES_MAX,
    description:
      'Certified prize table. The counts may sum to at most poolSize; all other tickets win nothing',
  }),
});

export type PrizeTableUsd = Readonly<Static<typeof PrizeTableUsd>>;

/**
 * Reads a prize table whose members already have valid types and ranges. Returns all faults in its numbers.
 */
export function checkPrizeTable(sent: PrizeTableUsd): { table: PrizeTable } | { faults: Fault[] } {
  const faults: Fault[] = [];
  const amount = (path: string, usd: number): number => {
    const micros = usdToMicros(usd);
    if (micros !== undefined && micros > 0 && micros <= MAX_FUND_MICROS) return micros;
    const message = `must be above 0 and at most ${microsToUsdText(MAX_FUND_MICROS)}, with at most 6 decimals`;
    faults.push({ path, message });
    return 0;
  };
  const { poolSize } = sent;
  const ticketPriceMicros = amount('/ticketPriceUsd', sent.ticketPriceUsd);
  let winning = 0;
  const prizes = sent.prizes.map(({ prizeName, prizeTier, valueUsd, count }, place) => {
    winning += count;
    if (prizeName === NO_WIN) {
      faults.push({ path: `/prizes/${place}/prizeName`, message: `must not be «${NO_WIN}»` });
    }
    return { prizeName, prizeTier, valueMicros: amount(`/prizes/${place}/valueUsd`, valueUsd), count };
  });
  const limit = `must be at most ${microsToUsdText(MAX_FUND_MICROS)} USD`;
  const paid = prizes.reduce((sum, { valueMicros, count }) => sum + BigInt(valueMicros) * BigInt(count), 0n);
  if (paid > MAX_FUND_MICROS) faults.push({ path: '/prizes', message: `${limit} for all prizes together` });
  if (BigInt(ticketPriceMicros) * BigInt(poolSize) > MAX_FUND_MICROS) {
    faults.push({ path: '/ticketPriceUsd', message: `${limit} for all tickets together` });
  }
  if (winning > poolSize) {
    faults.push({
      path: '/prizes',
      message: `have ${winning} tickets in total, but poolSize is ${poolSize}`,
    });
  }
  return faults.length > 0 ? { faults } : { table: { ticketPriceMicros, poolSize, prizes } };
}

const usdOf = (micros: number): number => Number(microsToUsdText(micros));

export const prizeTableUsd = ({ ticketPriceMicros, poolSize, prizes }: PrizeTable): PrizeTableUsd => ({
  ticketPriceUsd: usdOf(ticketPriceMicros),
  poolSize,
  prizes: prizes.map(({ valueMicros, ...prize }) => ({ ...prize, valueUsd: usdOf(valueMicros) })),
});

/**
 * Returns the prize table as canonical JSON (RFC 8785): members sorted by name, numbers and strings in
 * ECMAScript form.
 */
export function prizeTableText({ ticketPriceUsd, poolSize, prizes }: PrizeTableUsd): string {
  const ordered = prizes.map(({ count, prizeName, prizeTier, valueUsd }) => ({
    count,
    prizeName,
    prizeTier,
    valueUsd,
  }));
  return JSON.stringify({ poolSize, prizes: ordered, ticketPriceUsd });
}

/**
 * Converts a validated table from USD to micro-USD.
 * @throws RangeError if the prize table has faults
 */
export function readPrizeTable(table: PrizeTableUsd): PrizeTable {
  const read = checkPrizeTable(table);
  if ('faults' in read) throw new RangeError(`The prize table is invalid: ${JSON.stringify(read.faults)}`);
  return read.table;
}

/** Renders the presentation of each ticket code (docs/contract.md §9.3). */
export function renderPrizeTable({ ticketPriceMicros, prizes }: PrizeTable): RenderedSheet {
  const tickets = [{ prizeName: NO_WIN, prizeTier: 0, valueMicros: 0 }, ...prizes];
  const combinations = tickets.map(({ prizeName, prizeTier, valueMicros }) => {
    const celebrationTier = celebrationTierOf(prizeTier, valueMicros, ticketPriceMicros);
    const outcome = `{"prizeTier":${prizeTier},"payoutUsd":${microsToUsdText(valueMicros)},"isBonusTrigger":false}`;
    const presentation = JSON.stringify({ type: 'raffle', prizeName, prizeTier, celebrationTier });
    return {
      prizeTier,
      payoutMicros: valueMicros,
      isBonusTrigger: false,
      json: `"outcome":${outcome},"presentation":${presentation}`,
    };
  });
  const maxPayoutMicros = Math.max(...prizes.map(({ valueMicros }) => valueMicros));
  return { wagerMicros: ticketPriceMicros, maxPayoutMicros, combinations };
}

/**
 * Returns the certified return of a raffle: the prizes of the whole pool divided by the price of all tickets.
 */
export const poolRtp = ({ ticketPriceMicros, poolSize, prizes }: PrizeTable): number | null =>
  rtpOf(
    BigInt(ticketPriceMicros) * BigInt(poolSize),
    prizes.reduce((sum, { valueMicros, count }) => sum + BigInt(valueMicros) * BigInt(count), 0n),
  );
