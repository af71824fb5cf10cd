/**
 * Exact decimal arithmetic. A number is kept as digits and a power of ten, so that no sum, product or
 * comparison is ever rounded.
 */

/** Exact decimal number with the value `digits × 10^exponent`. */
export interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/** Value of a JSON number token. `digits` has no zeros at either end and is empty for zero. */
export interface DecimalText {
  readonly isNegative: boolean;
  readonly digits: string;
  /** Power of ten of the last digit. Infinite if the exponent in the token does not fit a double. */
  readonly exponent: number;
}

const NUMBER_TOKEN = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/**
 * Parses an RFC 8259 number token. Undefined if the text is not such a token. Time and memory are
 * proportional to the length of the text, however large the exponent is.
 */
export function scanDecimal(text: string): DecimalText | undefined {
  const match = NUMBER_TOKEN.exec(text);
  if (match === null) return undefined;
  const fraction = match[3] ?? '';
  const all = `${match[2]}${fraction}`;
  let start = 0;
  while (start < all.length && all[start] === '0') start++;
  let end = all.length;
  while (end > start && all[end - 1] === '0') end--;
  if (start === end) return { isNegative: false, digits: '', exponent: 0 };
  const written = match[4] === undefined ? 0 : Number(match[4]);
  return {
    isNegative: match[1] === '-',
    digits: all.slice(start, end),
    exponent: written - fraction.length + (all.length - end),
  };
}

/** Returns the exact value of a number's shortest round-trip form, which JSON prints. */
export function decimalOf(value: number): Decimal {
  const scanned = scanDecimal(String(value));
  if (scanned === undefined) throw new RangeError(`not a finite number: ${value}`);
  if (scanned.digits === '') return { digits: 0n, exponent: 0 };
  const magnitude = BigInt(scanned.digits);
  return { digits: scanned.isNegative ? -magnitude : magnitude, exponent: scanned.exponent };
}

/**
 * Converts decimals to integer multiples of one power of ten. This is the largest power, at most 10^0, of
 * which all the decimals are multiples.
 */
export function toCommonExponent(decimals: readonly Decimal[]): { digits: bigint[]; exponent: number } {
  let exponent = 0;
  for (const decimal of decimals) if (decimal.exponent < exponent) exponent = decimal.exponent;
  const digits = decimals.map((decimal) => decimal.digits * 10n ** BigInt(decimal.exponent - exponent));
  return { digits, exponent };
}

export function sumDecimals(decimals: readonly Decimal[]): Decimal {
  const { digits, exponent } = toCommonExponent(decimals);
  return { digits: digits.reduce((sum, each) => sum + each, 0n), exponent };
}

export function multiplyDecimals(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, exponent: a.exponent + b.exponent };
}

/** Returns whether `|a − b| ≤ tolerance`, exactly. */
export function isWithin(a: Decimal, b: Decimal, tolerance: Decimal): boolean {
  const common = toCommonExponent([a, b, tolerance]).digits as [bigint, bigint, bigint];
  const difference = common[0] - common[1];
  return (difference < 0n ? -difference : difference) <= common[2];
}

/** Converts a decimal to the nearest double, for a message or a gauge. */
export function decimalToNumber(decimal: Decimal): number {
  return Number(`${decimal.digits}e${decimal.exponent}`);
}
