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
export const textArrayOf = (values: readonly string[]): string => `{${values.map(elementOf).join(',')}}`;

function elementOf(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  if (typeof value === 'string') return `"${value.replace(/[\\"]/g, '\\$&')}"`;
  return Buffer.isBuffer(value) ? `"\\\\x${value.toString('hex')}"` : String(value);
}

/** Returns the column of a member: `key_id` for `keyId`. */
export const columnOf = (member: string): string =>
  member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Result of {@link rowsOf}: an array literal for each column, its SQL type, and the names for SQL. */
export class GivenRows {
  constructor(
    readonly lists: readonly string[],
    readonly types: readonly string[],
    readonly names: string,
  ) {}
}

type ColumnType = 'int' | 'bigint' | 'numeric' | 'float8' | 'boolean' | 'date' | 'text' | 'bytea';

/**
 * Passes objects to a statement as the rows of a table: `SELECT * FROM ${rowsOf(days, { gameId: 'int' })}`
 * has the column `game_id`. Each column is one parameter, so the statement is the same for any number of
 * rows.
 * @param types SQL types of the members that become columns, in their order
 */
export function rowsOf<Row extends object>(
  rows: readonly Row[],
  types: { readonly [M in keyof Row & string]?: ColumnType },
  table = 'given',
): unknown {
  const members = Object.keys(types) as (keyof Row & string)[];
  const names = members.map((member) => `"${columnOf(member)}"`);
  const lists = members.map((member) => `{${rows.map((row) => elementOf(row[member])).join(',')}}`);
  return new GivenRows(lists, Object.values(types) as ColumnType[], `${table}(${names.join(', ')})`);
}

/**
 * Converts a database integer to a number.
 * @throws RangeError if a double can't represent it exactly
 */
export function safe(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is not a safe integer`);
  return number;
}
