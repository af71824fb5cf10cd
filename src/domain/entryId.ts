/**
 * The id of a ledger entry: 41 bits of milliseconds since the epoch, 8 bits of the cell, 14 bits of a sequence within the
 * millisecond. Ids of a cell grow in the order in which its entries are made; lua/ makes them, this file reads them.
 *
 *   63   62 ........ 22   21 .... 14   13 ........ 0
 *   0    milliseconds     cell         sequence
 */

const CELL_BITS = 8;
const SEQUENCE_BITS = 14;
const TIME_SHIFT = CELL_BITS + SEQUENCE_BITS;
const TIME_SHIFT_BIG = BigInt(TIME_SHIFT);
const SEQUENCE_BITS_BIG = BigInt(SEQUENCE_BITS);
/** Milliseconds in one step of the upper 32-bit word of an id. */
const MS_PER_HIGH_WORD = 2 ** (32 - TIME_SHIFT);

/** The largest cell number, 255. */
export const CELL_MAX = 2 ** CELL_BITS - 1;
/** The largest sequence number of a millisecond, 16,383. */
export const SEQUENCE_MAX = 2 ** SEQUENCE_BITS - 1;
const CELL_MASK = BigInt(CELL_MAX);
const SEQUENCE_MASK = BigInt(SEQUENCE_MAX);

/** The parts of an id. */
export interface EntryIdParts {
  /** Milliseconds since the epoch at which the entry was made, 0 to 2^41 − 1. */
  readonly timeMs: number;
  /** 0 to {@link CELL_MAX}. */
  readonly cell: number;
  /** 0 to {@link SEQUENCE_MAX}. */
  readonly sequence: number;
}

export const makeEntryId = ({ timeMs, cell, sequence }: EntryIdParts): bigint =>
  (BigInt(timeMs) << TIME_SHIFT_BIG) | (BigInt(cell) << SEQUENCE_BITS_BIG) | BigInt(sequence);

export const parseEntryId = (id: bigint): EntryIdParts => ({
  timeMs: entryTimeMs(id),
  cell: entryCell(id),
  sequence: Number(id & SEQUENCE_MASK),
});

/** Milliseconds since the epoch at which the entry with this id was made. */
export const entryTimeMs = (id: bigint): number => Number(id >> TIME_SHIFT_BIG);

/** The same of an id in two words of 32 bits, signed or unsigned: the hot paths make no BigInt. */
export const entryTimeMsOfWords = (high: number, low: number): number =>
  (high >>> 0) * MS_PER_HIGH_WORD + (low >>> TIME_SHIFT);

/** The cell of the entry with this id. */
export const entryCell = (id: bigint): number => Number((id >> SEQUENCE_BITS_BIG) & CELL_MASK);

/** The same of the lower of two words of 32 bits, unsigned: the hot paths make no BigInt. */
export const entryCellOfWords = (low: number): number => (low >>> SEQUENCE_BITS) & CELL_MAX;

/** SQL for the cell of the entry whose id a column holds. */
export const entryCellSql = (column: string): string => `((${column} >> ${SEQUENCE_BITS}) & ${CELL_MAX})`;

/** The smallest id of a moment (milliseconds since the epoch): ids of that moment and later are not below it. */
export const firstIdAt = (timeMs: number): bigint => BigInt(timeMs) << TIME_SHIFT_BIG;

/** How far ids advance in so many milliseconds. */
export const idsIn = (durationMs: number): bigint => BigInt(durationMs) << TIME_SHIFT_BIG;

/** The id of the outbox stream entry whose last ledger entry has this id. */
export const streamIdOf = (id: bigint): string => `${id >> TIME_SHIFT_BIG}-${id & SEQUENCE_MASK}`;

/** A stream id after which the first entry of the stream is the one that this ledger entry is in. */
export function streamIdBefore(id: bigint): string {
  const hasOneBefore = (id & SEQUENCE_MASK) > 0n;
  return hasOneBefore ? streamIdOf(id - 1n) : `${(id >> TIME_SHIFT_BIG) - 1n}-${SEQUENCE_MAX}`;
}
