/**
 * How the audit reads an entry id: 41 bits of milliseconds since the epoch, 8 bits of the cell, 14 bits of a
 * sequence within the millisecond. It doesn't use domain/entryId.ts, so that it notices an error there.
 */
const CELL_SHIFT = 14;
const TIME_SHIFT = 22;
const CELL_MASK = 0xff;
const SEQUENCE = 0x3fffn;
const NEXT_MS = 1n << BigInt(TIME_SHIFT);

/** Combines the upper and lower 32 bits of an id. */
export const idOf = (high: number, low: number): bigint => (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);

export const timeMsOf = (id: bigint): number => Number(id >> BigInt(TIME_SHIFT));
export const timeMsOfWords = (high: number, low: number): number =>
  high * 2 ** (32 - TIME_SHIFT) + (low >>> TIME_SHIFT);

export const cellOf = (id: bigint): number => Number((id >> BigInt(CELL_SHIFT)) & BigInt(CELL_MASK));
export const cellOfWords = (low: number): number => (low >>> CELL_SHIFT) & CELL_MASK;

/** Returns the id that the cell assigns after this one within the same script call. */
export const nextId = (id: bigint): bigint =>
  (id & SEQUENCE) === SEQUENCE ? id - SEQUENCE + NEXT_MS : id + 1n;

export const cellSql = (column: string): string => `((${column} >> ${CELL_SHIFT}) & ${CELL_MASK})`;
export const daySql = (column: string): string =>
  `to_char(to_timestamp((${column} >> ${TIME_SHIFT}) / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')`;
