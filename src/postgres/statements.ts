/** What statements are made of. For stores only (*.store.ts): SQL lies with its owner. */
export class Raw {
  constructor(readonly text: string) {}
}

/** A part of a statement that is text, such as a list of columns. Never for what a caller sent. */
export const raw = (text: string): unknown => new Raw(text);

/**
 * Waits for statements that were sent together.
 * @throws the error of the first of them that failed; those after it failed for that alone
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

/** Numbers, or texts without special characters, as an array literal; to be cast where it is used. */
export const arrayOf = (values: readonly (number | bigint | string)[]): string => `{${values.join(',')}}`;

/** The same of texts that may have any character. */
export const textArrayOf = (values: readonly string[]): string =>
  `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`;

/** A database integer as a JS number. @throws RangeError where a double can't hold it exactly. */
export function safe(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is not a safe integer`);
  return number;
}
