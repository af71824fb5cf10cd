/**
 * Exact decimals of the model, independent of the service: JSON numbers by their text, and money as whole
 * micro-USD in BigInt.
 */

/** A decimal with the value `digits / 10^places`. */
export interface Decimal {
  readonly digits: bigint;
  readonly places: number;
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

const TOKEN = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

export function decimal(token: string): Decimal {
  const match = TOKEN.exec(token);
  if (match === null) throw new RangeError(`Not a number: ${token}`);
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const digits = BigInt(`${sign}${whole}${fraction}`);
  const places = fraction.length - Number(exponent);
  return places < 0 ? { digits: digits * 10n ** BigInt(-places), places: 0 } : { digits, places };
}

export const product = (a: Decimal, b: Decimal): Decimal => ({
  digits: a.digits * b.digits,
  places: a.places + b.places,
});

export const isSame = (a: Decimal, b: Decimal): boolean =>
  a.digits * 10n ** BigInt(b.places) === b.digits * 10n ** BigInt(a.places);

/** Returns the value in micro-USD. Undefined if the value is not a whole number of micro-USD. */
export function micros({ digits, places }: Decimal): bigint | undefined {
  if (places <= 6) return digits * 10n ** BigInt(6 - places);
  const unit = 10n ** BigInt(places - 6);
  return digits % unit === 0n ? digits / unit : undefined;
}

/**
 * Returns the micro-USD of an amount that {@link numbersAsText} converted to text. Undefined if the text is
 * not an amount.
 */
export const amount = (value: Json | undefined): bigint | undefined =>
  typeof value === 'string' && TOKEN.test(value) ? micros(decimal(value)) : undefined;

/** Formats micro-USD as USD with six decimals. */
export function usd(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(7, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** Parses a JSON text and keeps each number as its original text, so that no amount becomes a double. */
export function numbersAsText(json: string): Json {
  return JSON.parse(
    json.replace(/("(?:[^"\\]|\\.)*")|-?\d[\d.eE+-]*/g, (token, text: string | undefined) =>
      text === undefined ? `"${token}"` : text,
    ),
  ) as Json;
}

export function at(json: Json | undefined, ...names: readonly (string | number)[]): Json | undefined {
  let value: Json | undefined = json;
  for (const name of names) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as { readonly [name: string]: Json })[name];
  }
  return value;
}
