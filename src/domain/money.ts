/**
 * Money is whole micro-USD (10^-6 USD) in safe integers. Decimal text goes in and comes out; no floating point
 * arithmetic touches an amount on the way.
 */

import { decimalOf, scanDecimal } from './decimal.js';

/** The largest amount, of either sign, that the conversions below give: nine thousand million USD. */
export const MAX_MICROS = 9_000_000_000_000_000;

const MICROS_PER_USD = 1_000_000;
const MICRO_DIGITS = 6;
const MAX_MICROS_DIGITS = 16;

/**
 * The number's exact decimal value (its shortest round trip form, as JSON prints it) in micro-USD.
 * `undefined` if it isn't a whole number of micro-USD or lies outside ±{@link MAX_MICROS}.
 */
export function usdToMicros(usd: number): number | undefined {
  return decimalTextToMicros(String(usd));
}

/**
 * The exact decimal value of an RFC 8259 number token (`2.5e-1`, `0.25`) in micro-USD. `undefined` if the text isn't
 * such a token, isn't a whole number of micro-USD, or lies outside ±{@link MAX_MICROS}.
 */
export function decimalTextToMicros(text: string): number | undefined {
  const scanned = scanDecimal(text);
  if (scanned === undefined) return undefined;
  if (scanned.digits === '') return 0;
  const zeros = scanned.exponent + MICRO_DIGITS;
  if (zeros < 0 || scanned.digits.length + zeros > MAX_MICROS_DIGITS) return undefined;
  const magnitude = Number(scanned.digits + '0'.repeat(zeros));
  if (magnitude > MAX_MICROS) return undefined;
  return scanned.isNegative ? -magnitude : magnitude;
}

/**
 * An amount as JSON number text in USD: at most six decimals, no trailing zeros, no exponent.
 * @param micros a safe integer
 */
export function microsToUsdText(micros: number): string {
  const magnitude = micros < 0 ? -micros : micros;
  // The remainder of safe integers is exact, and so is the division of what it leaves.
  let fraction = magnitude % MICROS_PER_USD;
  const whole = (magnitude - fraction) / MICROS_PER_USD;
  const sign = micros < 0 ? '-' : '';
  if (fraction === 0) return `${sign}${whole}`;
  let width = MICRO_DIGITS;
  while (fraction % 10 === 0) {
    fraction /= 10;
    width--;
  }
  return `${sign}${whole}.${String(fraction).padStart(width, '0')}`;
}

/**
 * `denomination × payMultiplier`, by their decimal digits. `undefined` if the product isn't a whole number of
 * micro-USD, lies outside ±{@link MAX_MICROS}, or the multiplier isn't finite.
 */
export function payoutMicros(denominationMicros: number, payMultiplier: number): number | undefined {
  if (!Number.isFinite(payMultiplier)) return undefined;
  const multiplier = decimalOf(payMultiplier);
  let product = BigInt(denominationMicros) * multiplier.digits;
  const scale = 10n ** BigInt(Math.abs(multiplier.exponent));
  if (multiplier.exponent >= 0) product *= scale;
  else if (product % scale !== 0n) return undefined;
  else product /= scale;
  if (product > BigInt(MAX_MICROS) || product < -BigInt(MAX_MICROS)) return undefined;
  return Number(product);
}
