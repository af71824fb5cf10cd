/** Computes the figures of a PAR sheet that its page shows, and formats its decimals. */
import type { Schemas } from './api.js';

type Sheet = Schemas['OperatorParSheetDetail']['sheet'];

/** A decimal of a sheet has at most 15 significant digits; digits beyond them are noise of a double. */
const DECIMAL = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 15, useGrouping: false });

/** Formats a number as a decimal, without an exponent and without the noise of floating-point sums. */
export const decimal = (value: number): string => DECIMAL.format(value);

export interface TierReturn {
  /** Part of the tier in the return to player, as a fraction of the wager. */
  readonly part: number;
  /** Lowest and highest multiplier that a combination of the tier pays. */
  readonly lowest: number;
  readonly highest: number;
}

/**
 * Returns the return of each tier by its id. Payouts use the multiplier of the combination; the multiplier
 * of a tier is nominal, so the return can't be computed from it.
 */
export function tierReturns({ combinations }: Pick<Sheet, 'combinations'>): ReadonlyMap<number, TierReturn> {
  const returns = new Map<number, TierReturn>();
  for (const { tierId, comboProbability, payMultiplier } of combinations) {
    const { part, lowest, highest } = returns.get(tierId) ?? {
      part: 0,
      lowest: payMultiplier,
      highest: payMultiplier,
    };
    returns.set(tierId, {
      part: part + comboProbability * payMultiplier,
      lowest: Math.min(lowest, payMultiplier),
      highest: Math.max(highest, payMultiplier),
    });
  }
  return returns;
}
