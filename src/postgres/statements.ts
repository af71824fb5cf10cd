/** Parts of SQL statements. Only files `*.store.ts` may use them, because all SQL is in these files. */
export class Raw {
  constructor(readonly text: string) {}
}

/**
 * Marks a part of a statement, such as a list of columns, as SQL text. The function must never be used for a
 * caller's input.
 */
export const raw = (text: string): unknown => new Raw(text);

/**
 * Awaits statements that were sent together.
 * @throws the error of the first failed statement; later statements failed as a consequence
 */
export async function together<const Running extends readonly Promise<unknown>[]>(
  running: Running,
): Promise<{
  -readonly [At in keyof Running]: Awaited<Running[At]>;
}> {
  const settled = await Promise.allSettled(running);
  const values = settled.map((each) => {
    if (each.status === 'rejected') throw each.reason;
    return each.value;
  });
  return values as {
    -readonly [At in keyof Running]: Awaited<Running[At]>;
  };
}

/**
 * Formats numbers, or texts without special characters, as an array literal, which the statement must cast.
 */
export const arrayOf = (values: readonly (number | bigint | string)[]): string => `{${values.join(',')}}`;

/** Formats texts with any characters as an array literal. */
export const textArrayOf = (values: readonly string[]): string =>
  `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`;

/**
 * Converts a database integer to a number.
 * @throws RangeError if a double can't represent it exactly
 */
export function safe(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is not a safe integer`);
  return number;
}
