/**
 * What a PAR sheet's combinations and a raffle's prizes pay, by arithmetic of the audit's own: whole numbers and the sheet's decimal text, and
 * none of the code that the service pays by.
 */

import type { Facts } from './auditReads.store.js';
import type { AuditedTable } from './gameAuditReads.store.js';
import type { Findings } from './report.js';

const MICRO_DIGITS = 6;
/** An exponent beyond it is no number that a certified sheet bears; it would only fill memory with zeros. */
const EXPONENT_MAX = 400;

/** `digits × 10^-scale` */
interface Exact {
  readonly digits: bigint;
  readonly scale: number;
}

/** @throws RangeError where the text is not a decimal number */
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

/** In whole micro-USD; undefined where it is not. */
function micros({ digits, scale }: Exact): bigint | undefined {
  const zeros = MICRO_DIGITS - scale;
  if (zeros >= 0) return digits * 10n ** BigInt(zeros);
  const divisor = 10n ** BigInt(-zeros);
  return digits % divisor === 0n ? digits / divisor : undefined;
}

export interface Payouts {
  /** Micro-USD; NaN where the sheet states none that is whole. */
  readonly wager: number;
  /** By outcome code. */
  readonly paid: Float64Array;
}

const number = (amount: bigint | undefined): number => (amount === undefined ? Number.NaN : Number(amount));

/**
 * @param denomination USD, as the sheet has it
 * @param multipliers of the combinations, in their order
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

/** What a deal of blackjack pays by itself: nothing while it is open, nothing where it is lost, the wager at a push, a natural's odds. */
function dealsOf({ rules, wagerMicros }: AuditedTable): Payouts {
  const odds = rules.blackjackPays === '6:5' ? [6, 5] : [3, 2];
  const natural = wagerMicros + (wagerMicros * odds[0]!) / odds[1]!;
  return { wager: wagerMicros, paid: Float64Array.from([0, 0, wagerMicros, natural]) };
}

/**
 * @param ticketPrice USD, as the prize table has it; likewise the values
 * @param values of the prizes, in their order
 */
function prizesOf(ticketPrice: string, values: readonly string[]): Payouts {
  return {
    wager: number(micros(exactOf(ticketPrice))),
    paid: Float64Array.from([0, ...values.map((text) => number(micros(exactOf(text))))]),
  };
}

/** What sheets pay, and what raffles and tables do, by game. One that can't be read is found. */
export function allPayouts(
  facts: Facts,
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
