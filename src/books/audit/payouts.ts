/**
 * Computes the payouts of PAR sheets, raffle prizes and blackjack deals for the audit. The audit has its own
 * exact arithmetic on the decimal text of the sheet, and uses no code of the service for it.
 */

import type { Facts } from './auditReads.store.js';
import type { AuditedTable } from './gameAuditReads.store.js';
import type { Findings } from './report.js';

const MICRO_DIGITS = 6;
/**
 * Maximum exponent of a decimal number. A certified sheet never has a larger exponent, and the zeros of a
 * huge one would only fill memory.
 */
const EXPONENT_MAX = 400;

/** Exact decimal number: `digits × 10^-scale`. */
interface Exact {
  readonly digits: bigint;
  readonly scale: number;
}

/** @throws RangeError if the text is not a decimal number */
function exactOf(text: string): Exact {
  const [mantissa = '', exponentText = '0', ...rest] = text.toLowerCase().split('e');
  const [whole = '', fraction = '', ...more] = mantissa.split('.');
  const exponent = Number(exponentText);
  const isNumber = /^-?\d+$/.test(whole) && /^\d*$/.test(fraction) && /^[+-]?\d+$/.test(exponentText);
  if (!isNumber || rest.length + more.length > 0 || Math.abs(exponent) > EXPONENT_MAX) {
    throw new RangeError(`«${text}» is not a decimal number`);
  }
  return { digits: BigInt(whole + fraction), scale: fraction.length - exponent };
}

/** Returns the amount in whole micro-USD, or undefined if it is not a whole number. */
function micros({ digits, scale }: Exact): bigint | undefined {
  const zeros = MICRO_DIGITS - scale;
  if (zeros >= 0) return digits * 10n ** BigInt(zeros);
  const divisor = 10n ** BigInt(-zeros);
  return digits % divisor === 0n ? digits / divisor : undefined;
}

export interface Payouts {
  /** Wager in micro-USD; NaN if the wager in the sheet is not a whole number of micro-USD. */
  readonly wager: number;
  /** Payout by outcome code, in micro-USD. */
  readonly paid: Float64Array;
}

const number = (amount: bigint | undefined): number => (amount === undefined ? Number.NaN : Number(amount));

/**
 * @param denomination denomination in USD, as the sheet states it
 * @param multipliers pay multipliers of the combinations, in order
 */
export function payoutsOf(denomination: string, multipliers: readonly string[]): Payouts {
  const wager = exactOf(denomination);
  return {
    wager: number(micros(wager)),
    paid: Float64Array.from(multipliers, (text) => {
      const multiplier = exactOf(text);
      return number(
        micros({ digits: wager.digits * multiplier.digits, scale: wager.scale + multiplier.scale }),
      );
    }),
  };
}

/**
 * Payouts of a blackjack deal before any action: nothing for an open or lost deal, the wager for a push, and
 * the odds of a natural for a blackjack.
 */
function dealsOf({ rules, wagerMicros }: AuditedTable): Payouts {
  const odds = rules.blackjackPays === '6:5' ? [6, 5] : [3, 2];
  const natural = wagerMicros + (wagerMicros * odds[0]!) / odds[1]!;
  return { wager: wagerMicros, paid: Float64Array.from([0, 0, wagerMicros, natural]) };
}

/**
 * @param ticketPrice ticket price in USD, as the prize table states it
 * @param values values of the prizes in USD, in order
 */
function prizesOf(ticketPrice: string, values: readonly string[]): Payouts {
  return {
    wager: number(micros(exactOf(ticketPrice))),
    paid: Float64Array.from([0, ...values.map((text) => number(micros(exactOf(text))))]),
  };
}

/**
 * Returns the payouts of PAR sheets by sheet id, and the payouts of raffles and tables by game id. Unreadable
 * sheets and prize tables become findings.
 */
export function allPayouts(
  facts: Pick<Facts, 'sheets' | 'raffles' | 'tables'>,
  findings: Findings,
): { payouts: Map<number, Payouts>; prizes: Map<number, Payouts> } {
  const payouts = new Map<number, Payouts>();
  for (const [sheetId, sheet] of facts.sheets) {
    try {
      payouts.set(sheetId, payoutsOf(sheet.denomination, sheet.multipliers));
    } catch (error) {
      findings.found('outcomes', `PAR sheet: ${(error as Error).message}`, { sheet: sheetId });
    }
  }
  const prizes = new Map<number, Payouts>();
  for (const [gameId, raffle] of facts.raffles) {
    try {
      prizes.set(gameId, prizesOf(raffle.ticketPrice, raffle.values));
    } catch (error) {
      findings.found('outcomes', `prize table: ${(error as Error).message}`, { game: gameId });
    }
  }
  for (const [gameId, table] of facts.tables) prizes.set(gameId, dealsOf(table));
  return { payouts, prizes };
}
