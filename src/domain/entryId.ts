/**
 * Id of a ledger entry: 41 bits of milliseconds since the epoch, 8 bits for the cell, and 14 bits for a
 * sequence within the millisecond. The ids of a cell increase in the order of its entries. The scripts in
 * lua/ create ids; this file reads them.
 *
 *   63   62 ........ 22   21 .... 14   13 ........ 0
 *   0    milliseconds     cell         sequence
 */

const CELL_BITS = 8;
const SEQUENCE_BITS = 14;
const TIME_SHIFT = CELL_BITS + SEQUENCE_BITS;
const TIME_SHIFT_BIG = BigInt(TIME_SHIFT);
const SEQUENCE_BITS_BIG = BigInt(SEQUENCE_BITS);
/** Milliseconds per step of the upper 32-bit word of an id. */
const MS_PER_HIGH_WORD = 2 ** (32 - TIME_SHIFT);

/** Largest number of a cell, 255. */
export const CELL_MAX = 2 ** CELL_BITS - 1;
/** Largest sequence number within a millisecond, 16,383. */
export const SEQUENCE_MAX = 2 ** SEQUENCE_BITS - 1;
const CELL_MASK = BigInt(CELL_MAX);
const SEQUENCE_MASK = BigInt(SEQUENCE_MAX);

export interface EntryIdParts {
  /** Time of the entry in milliseconds since the epoch, 0 to 2^41 − 1. */
  readonly timeMs: number;
  /** Cell of the entry, 0 to {@link CELL_MAX}. */
  readonly cell: number;
  /** Sequence number within the millisecond, 0 to {@link SEQUENCE_MAX}. */
  readonly sequence: number;
}

export const makeEntryId = ({ timeMs, cell, sequence }: EntryIdParts): bigint =>
  (BigInt(timeMs) << TIME_SHIFT_BIG) | (BigInt(cell) << SEQUENCE_BITS_BIG) | BigInt(sequence);

export const parseEntryId = (id: bigint): EntryIdParts => ({
  timeMs: entryTimeMs(id),
  cell: entryCell(id),
  sequence: Number(id & SEQUENCE_MASK),
});

export const entryTimeMs = (id: bigint): number => Number(id >> TIME_SHIFT_BIG);

/**
 * Returns the time of an entry whose id is given as two 32-bit words, signed or unsigned. Hot paths use it to
 * avoid a BigInt.
 */
export const entryTimeMsOfWords = (high: number, low: number): number =>
  (high >>> 0) * MS_PER_HIGH_WORD + (low >>> TIME_SHIFT);

export const entryCell = (id: bigint): number => Number((id >> SEQUENCE_BITS_BIG) & CELL_MASK);

/**
 * Returns the cell of an entry from the lower 32-bit word of its id, unsigned. Hot paths use it to avoid a
 * BigInt.
 */
export const entryCellOfWords = (low: number): number => (low >>> SEQUENCE_BITS) & CELL_MAX;

/** SQL expression for the cell of an entry whose id is in a column. */
export const entryCellSql = (column: string): string => `((${column} >> ${SEQUENCE_BITS}) & ${CELL_MAX})`;

/**
 * Returns the smallest possible id at a time (milliseconds since the epoch). Entries of that time or later
 * have no smaller id.
 */
export const firstIdAt = (timeMs: number): bigint => BigInt(timeMs) << TIME_SHIFT_BIG;

/** Returns the difference between two ids whose times differ by a duration in milliseconds. */
export const idsIn = (durationMs: number): bigint => BigInt(durationMs) << TIME_SHIFT_BIG;

/** Returns the id of the stream entry in the outbox whose last ledger entry has this id. */
export const streamIdOf = (id: bigint): string => `${id >> TIME_SHIFT_BIG}-${id & SEQUENCE_MASK}`;

/** Returns a stream id after which the next entry of the outbox's stream contains this ledger entry. */
export function streamIdBefore(id: bigint): string {
  const hasOneBefore = (id & SEQUENCE_MASK) > 0n;
  return hasOneBefore ? streamIdOf(id - 1n) : `${(id >> TIME_SHIFT_BIG) - 1n}-${SEQUENCE_MAX}`;
}
