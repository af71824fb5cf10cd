/**
 * JSON whose numbers may have more digits than a double holds: sums of money and counts are written and read exactly.
 *
 * A number that a double holds is a number. Any other is an ExactNumber, which becomes a marked string on its way through
 * JSON.stringify and loses the mark there. The mark is U+0000, which no text of the stores or of a request can contain.
 */
import { microsToUsdText, usdToMicros } from './money.js';

const MARK = '\u0000';
const MARKED = /"\\u0000(-?[0-9.]+)"/g;
/** Strings, which are passed over, and numbers. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** A double distinguishes all decimals of so many digits. */
const SAFE_DIGITS = 15;

/** A JSON number by its text. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }

  /** For JSON.stringify, on the way to {@link exactJson}. */
  toJSON(): string {
    return MARK + this.text;
  }
}

export type JsonNumber = number | ExactNumber;

/** What a schema describes, with amounts and counts that may be beyond a double. */
export type WithSums<Described, Counts> = {
  readonly [Name in keyof Described]: Name extends `${string}Usd` | Counts
    ? Described[Name] | ExactNumber
    : Described[Name];
};

/** A whole number as a JSON number, exact whatever its size. */
export const jsonInteger = (value: bigint): JsonNumber =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : new ExactNumber(String(value));

/** Micro-USD as a JSON number in USD with at most six decimals, exact whatever its size. */
export function jsonUsd(micros: bigint): JsonNumber {
  const whole = Number(micros);
  if (Number.isSafeInteger(whole)) {
    const usd = Number(microsToUsdText(whole));
    if (usdToMicros(usd) === whole) return usd;
  }
  const magnitude = micros < 0n ? -micros : micros;
  const fraction = String(magnitude % 1_000_000n)
    .padStart(6, '0')
    .replace(/0+$/, '');
  const digits = `${micros < 0n ? '-' : ''}${magnitude / 1_000_000n}`;
  return new ExactNumber(fraction === '' ? digits : `${digits}.${fraction}`);
}

/** Takes the marks away that {@link ExactNumber} leaves in JSON text. */
export const unmarked = (json: string): string => json.replace(MARKED, '$1');

/** As JSON.stringify, with each ExactNumber as a number. */
export const exactJson = (value: unknown): string => unmarked(JSON.stringify(value));

/** As JSON.parse; a number that a double does not hold is an ExactNumber. @throws SyntaxError where the text is no JSON. */
export function parseExactJson(text: string): unknown {
  const marked = text.replace(TOKEN, (token) => (isExactAsDouble(token) ? token : `"\\u0000${token}"`));
  return JSON.parse(marked, (_name, value: unknown) =>
    typeof value === 'string' && value.startsWith(MARK) ? new ExactNumber(value.slice(1)) : value,
  );
}

const isExactAsDouble = (token: string): boolean =>
  token.startsWith('"') || token.length <= SAFE_DIGITS || String(Number(token)) === token;
