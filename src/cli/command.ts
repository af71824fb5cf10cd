/** What the commands have in common. */
import { InvalidArgumentError } from 'commander';
import { decimalTextToMicros, microsToUsdText, usdToMicros } from '../domain/money.js';

/** The command was written wrongly: exit status 2. */
export class UsageError extends Error {}
/** Whoever was asked did not agree: exit status 1. */
export class DeclinedError extends Error {}
/** There is no such thing: exit status 1. */
export class NotFoundError extends Error {}
/** What was given was looked into and found wrong, in these lines: exit status 1. */
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

// Readers of options. What they throw names the option, and is wrong usage.

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** An amount in USD as the text says it: what it gives is the same decimal, to be put into JSON. */
export function parseUsdText(text: string): string {
  const micros = decimalTextToMicros(text);
  if (micros === undefined) {
    throw new InvalidArgumentError('It must be a decimal number of USD with at most 6 decimals.');
  }
  return microsToUsdText(micros);
}

/** The same as a JSON number that a service reads as a double. Refused where that would be another amount. */
export function usdNumber(text: string): number {
  const number = Number(parseUsdText(text));
  if (usdToMicros(number) !== decimalTextToMicros(text)) {
    throw new InvalidArgumentError('It has more digits than the service distinguishes.');
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

/** The value of an option that takes a setting away: the parser of the command line makes other things of null. */
export const NONE = Symbol('none');

export const orNone =
  <T>(read: (text: string) => T) =>
  (text: string): T | typeof NONE =>
    text === 'none' ? NONE : read(text);
