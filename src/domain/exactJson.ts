/**
 * Reads and writes JSON whose numbers may have more digits than a double holds, so that sums of money and
 * counts are exact.
 *
 * A number that fits a double is read as a number. Any other number is an ExactNumber, which JSON.stringify
 * turns into a string with a mark; the mark and the quotes are removed afterwards. The mark is U+0000, a
 * character that no text of the stores or of a request can contain.
 */
import { microsToUsdText, usdToMicros } from './money.js';

const MARK = '\u0000';
const MARKED = /"\\u0000(-?[0-9.]+)"/g;
/** Matches the strings (which are skipped) and the numbers of a JSON text. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Number of significant decimal digits up to which different numbers are always different doubles. */
const SAFE_DIGITS = 15;

/** A JSON number that is kept as its text. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }

  /** JSON.stringify calls this method, which adds the mark. {@link exactJson} removes the mark afterwards. */
  toJSON(): string {
    return MARK + this.text;
  }
}

export type JsonNumber = number | ExactNumber;

/** Type of the values of a schema in which amounts and counts may exceed a double. */
export type WithSums<Described, Counts> = {
  readonly [Name in keyof Described]: Name extends `${string}Usd` | Counts
    ? Described[Name] | ExactNumber
    : Described[Name];
};

/** Converts an integer to a JSON number, exact whatever its size. */
export const jsonInteger = (value: bigint): JsonNumber =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : new ExactNumber(String(value));

/** Converts micro-USD to a JSON number in USD with at most six decimals, exact whatever its size. */
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

/** Removes the marks of {@link ExactNumber} from JSON text. */
export const unmarked = (json: string): string => json.replace(MARKED, '$1');

/** Works like JSON.stringify, but writes each ExactNumber as a number. */
export const exactJson = (value: unknown): string => unmarked(JSON.stringify(value));

/**
 * Works like JSON.parse, but a number that does not fit a double becomes an ExactNumber.
 * @throws SyntaxError if the text is not JSON
 */
export function parseExactJson(text: string): unknown {
  const marked = text.replace(TOKEN, (token) => (isExactAsDouble(token) ? token : `"\\u0000${token}"`));
  return JSON.parse(marked, (_name, value: unknown) =>
    typeof value === 'string' && value.startsWith(MARK) ? new ExactNumber(value.slice(1)) : value,
  );
}

const isExactAsDouble = (token: string): boolean =>
  token.startsWith('"') || token.length <= SAFE_DIGITS || String(Number(token)) === token;
