/**
 * Conversions of money. Amounts are whole micro-USD (10^-6 USD) in safe integers. They are converted from and
 * to decimal text without floating-point arithmetic.
 */

import { decimalOf, scanDecimal } from './decimal.js';

/** Maximum absolute amount, in micro-USD, that the conversions below return: 9 × 10^9 USD. */
export const MAX_MICROS = 9_000_000_000_000_000;

const MICROS_PER_USD = 1_000_000;
const MICRO_DIGITS = 6;
const MAX_MICROS_DIGITS = 16;

/**
 * Converts a number's exact decimal value (its shortest round-trip form, as JSON prints it) to micro-USD.
 * Undefined if it is not a whole number of micro-USD or lies outside ±{@link MAX_MICROS}.
 */
export function usdToMicros(usd: number): number | undefined {
  return decimalTextToMicros(String(usd));
}

/**
 * Converts an RFC 8259 number token (`2.5e-1`, `0.25`) to micro-USD, exactly. Undefined if the text is not
 * such a token, is not a whole number of micro-USD, or lies outside ±{@link MAX_MICROS}.
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
 * Formats an amount as JSON number text in USD: at most six decimals, no trailing zeros, no exponent.
 * @param micros a safe integer
 */
export function microsToUsdText(micros: number): string {
  const magnitude = micros < 0 ? -micros : micros;
  // The remainder of two safe integers is exact, and so is the division after the remainder is subtracted.
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
 * Returns `denomination × payMultiplier`, computed exactly from their decimal digits. Undefined if the
 * product is not a whole number of micro-USD, lies outside ±{@link MAX_MICROS}, or the multiplier is not
 * finite.
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
