/**
 * The row of the ledger in SQL and in COPY format. Both are derived from the list of the ledger's columns
 * (domain/ledgerColumns.ts) when the module is loaded.
 */
import {
  type EntryRow,
  LEDGER_COLUMNS,
  LEDGER_MEMBERS,
  type LedgerColumn,
  type LedgerEntry,
  type LedgerMember,
  type LedgerRow,
} from '../../domain/ledgerColumns.js';
import { entryOfCode } from '../../domain/ledgerEntry.js';
import type { CopyRow } from '../../postgres/copy.js';
import { safe } from '../../postgres/statements.js';

/**
 * @param alias alias of the ledger's table, needed if another table of the statement has columns of the same
 * names
 */
export const columnsSql = (members: readonly LedgerMember[], alias = ''): string =>
  members.map((member) => `${alias && `${alias}.`}${LEDGER_COLUMNS[member].name}`).join(', ');

const MEMBERS = LEDGER_MEMBERS.map(([member]) => member);

/** Lists all columns in the order of the table. */
export const allColumnsSql = (alias = ''): string => columnsSql(MEMBERS, alias);

/**
 * Returns, for each column, the number of its field in a COPY row that has the given columns in the given
 * order.
 */
export const fieldsOf = <M extends string>(
  members: readonly M[],
  from = 0,
): { readonly [Member in M]: number } =>
  Object.fromEntries(members.map((member, place) => [member, from + place])) as { [Member in M]: number };

/** Field numbers of the columns in {@link allColumnsSql}. */
export const LEDGER_FIELDS = fieldsOf(MEMBERS);

const readText = (row: CopyRow, field: number): string => row.text(field);
const readBig = (row: CopyRow, field: number): bigint => row.big(field);
const readSafe = (row: CopyRow, field: number): number => row.safe(field);
const readInt = (row: CopyRow, field: number): number => row.int(field);

function readerOf({ type, value }: LedgerColumn): (row: CopyRow, field: number) => bigint | number | string {
  if (type === 'text') return readText;
  if (type !== 'bigint') return readInt;
  return value === 'bigint' ? readBig : readSafe;
}

/**
 * Makes a function that reads the values of a COPY row that begins with these columns. The function is made
 * once and then reused, because a rebuild of Redis reads millions of rows.
 */
export function rowReader<M extends LedgerMember>(
  members: readonly M[],
): (row: CopyRow) => Pick<LedgerRow, M> {
  const readers = members.map((member) => ({ member, read: readerOf(LEDGER_COLUMNS[member]) }));
  return (row) => {
    const values: Partial<Record<LedgerMember, bigint | number | string | null>> = {};
    for (let field = 0; field < readers.length; field++) {
      const { member, read } = readers[field]!;
      values[member] = row.isNull(field) ? null : read(row, field);
    }
    return values as Pick<LedgerRow, M>;
  };
}

/**
 * @param toNumber converts a BigInt to a number; the default throws RangeError if the BigInt is not a safe
 * integer
 */
export const ledgerRowOf = (row: EntryRow, toNumber: (value: bigint) => number = safe): LedgerRow =>
  Object.fromEntries(
    LEDGER_MEMBERS.map(([member, { value }]) => {
      const read = row[member === 'id' ? 'entryId' : member];
      return [member, typeof read === 'bigint' && value === 'number' ? toNumber(read) : read];
    }),
  ) as unknown as LedgerRow;

export const entryOfRow = (row: EntryRow): LedgerEntry => ({
  ...ledgerRowOf(row),
  kind: entryOfCode(row.kind).kind,
});

// Writing rows ----------------------------------------------------------------------------------------------

export const COPY_LEDGER = `COPY ledger (${allColumnsSql()}) FROM STDIN (FORMAT binary)`;

const BYTES_OF = { bigint: 8, integer: 4, smallint: 2 };
const LENGTH_BYTES = 4;

type FixedMember = {
  [M in LedgerMember]: (typeof LEDGER_COLUMNS)[M] extends { type: 'text' } | { isNullable: true } ? never : M;
}[LedgerMember];

/**
 * Columns that have a fixed position in every row. The variable-length columns follow, each with its length.
 */
export const FIXED_MEMBERS = LEDGER_MEMBERS.filter(
  ([, { type, isNullable }]) => type !== 'text' && isNullable !== true,
).map(([member]) => member as FixedMember);

interface FieldPlace {
  readonly at: number;
  readonly bytes: number;
}

let end = 2;

/** Offset and size of each fixed column in a row of COPY's binary format (big endian), in bytes. */
export const ROW = Object.fromEntries(
  FIXED_MEMBERS.map((member): [FixedMember, FieldPlace] => {
    const [at, bytes] = [end + LENGTH_BYTES, BYTES_OF[LEDGER_COLUMNS[member].type]];
    end = at + bytes;
    return [member, { at, bytes }];
  }),
) as { readonly [M in FixedMember]: FieldPlace };

/** Row template with the number of fields and the length of each fixed field; all values are 0. */
const ROW_TEMPLATE = Buffer.alloc(end);
ROW_TEMPLATE.writeInt16BE(LEDGER_MEMBERS.length, 0);
for (const { at, bytes } of Object.values(ROW)) ROW_TEMPLATE.writeInt32BE(bytes, at - LENGTH_BYTES);

/** Maximum size of the buffer that is kept between flushes, in bytes. */
const KEPT_BYTES_MAX = 1_048_576;

/**
 * Builds the rows that `bookEntries` copies. For each row, the caller begins the row, writes its fixed
 * columns at their offsets, and appends the other columns in their order.
 */
export class CopyWriter {
  buffer = Buffer.allocUnsafe(16_384);
  #at = 0;

  reset(): void {
    // Each cell has its own writer, so a buffer that a backlog has enlarged is not kept.
    if (this.buffer.length > KEPT_BYTES_MAX) this.buffer = Buffer.allocUnsafe(KEPT_BYTES_MAX);
    this.#at = 0;
  }

  /**
   * Returns the offset of the new row in {@link buffer}, which the next `text` may replace. The offsets in
   * {@link ROW} are relative to it.
   */
  begin(): number {
    this.#reserve(ROW_TEMPLATE.length);
    const row = this.#at;
    ROW_TEMPLATE.copy(this.buffer, row);
    this.#at += ROW_TEMPLATE.length;
    return row;
  }

  /** Writes the next text of the row: the bytes of a source from `start` to `end` (exclusive), or null. */
  text(source: Buffer, start: number, end: number, isNull: boolean): void {
    this.#reserve(LENGTH_BYTES + end - start);
    this.buffer.writeInt32BE(isNull ? -1 : end - start, this.#at);
    this.#at += LENGTH_BYTES;
    if (isNull) return;
    // The loop copies byte by byte, because Buffer.copy would first create a view of the range.
    const { buffer } = this;
    for (let at = start; at < end; at++) buffer[this.#at++] = source[at]!;
  }

  /** The rows, as a view that is valid until the next `reset`. */
  get rows(): Buffer {
    return this.buffer.subarray(0, this.#at);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.#at + bytes));
    this.buffer.copy(larger, 0, 0, this.#at);
    this.buffer = larger;
  }
}
