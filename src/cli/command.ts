/** Errors, types and option parsers that all commands share. */
import { InvalidArgumentError } from 'commander';
import { decimalTextToMicros, microsToUsdText, usdToMicros } from '../domain/money.js';

/** Thrown for a wrong command line: exit status 2. */
export class UsageError extends Error {}
/** Thrown if the person did not confirm: exit status 1. */
export class DeclinedError extends Error {}
/** Thrown if the requested object does not exist: exit status 1. */
export class NotFoundError extends Error {}
/** Thrown if the checked input is faulty, with one line per fault: exit status 1. */
export class FaultsError extends Error {
  constructor(
    message: string,
    readonly faults: readonly string[],
  ) {
    super(message);
  }
}

export interface StoreUrls {
  readonly redisUrl: string;
  readonly databaseUrl: string;
}

export type Line = Record<string, string | number | boolean | null>;

export function whole(text: string | undefined, name: string): number {
  if (text === undefined || !/^\d{1,10}$/.test(text)) throw new UsageError(`${name} must be a whole number`);
  return Number(text);
}

// Option parsers. The command-line parser adds the option's name to their errors, which are usage errors.

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** Parses an amount in USD and returns it as decimal text without loss of precision, for use in JSON. */
export function parseUsdText(text: string): string {
  const micros = decimalTextToMicros(text);
  if (micros === undefined) {
    throw new InvalidArgumentError('It must be an amount in USD with at most 6 decimals, such as 12.50.');
  }
  return microsToUsdText(micros);
}

/**
 * Parses an amount in USD that the service reads as a double. Rejects text that a double can't represent
 * exactly.
 */
export function usdNumber(text: string): number {
  const number = Number(parseUsdText(text));
  if (usdToMicros(number) !== decimalTextToMicros(text)) {
    throw new InvalidArgumentError('It has more digits than the service can represent exactly.');
  }
  return number;
}

export function oneOf<T>(values: Readonly<Record<string, T>>): (text: string) => T {
  return (text) => {
    if (!Object.hasOwn(values, text)) {
      throw new InvalidArgumentError(`It must be ${Object.keys(values).join(' or ')}.`);
    }
    return values[text]!;
  };
}

/**
 * Value of an option that removes a setting. The value is a symbol, because the command-line parser does not
 * pass null on unchanged.
 */
export const NONE = Symbol('none');

export const orNone =
  <T>(read: (text: string) => T) =>
  (text: string): T | typeof NONE =>
    text === 'none' ? NONE : read(text);
