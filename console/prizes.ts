/** Parses the prizes of a raffle from CSV, and computes what the raffle takes and returns. */
import type { Schemas } from './api.js';

type Prize = Schemas['RafflePrize'];

const COLUMNS = ['prizeName', 'prizeTier', 'valueUsd', 'count'] as const;

/**
 * Parses the rows of a CSV text (RFC 4180). Fields may be quoted and may then contain quotes, commas and line
 * breaks.
 */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy;
  const source = text.replace(/^\ufeff/, '');
  let row: string[] = [];
  while (field.lastIndex < source.length) {
    const match = field.exec(source);
    if (match === null) throw new Error(`Line ${rows.length + 1} is not valid CSV`);
    row.push(match[1]?.replaceAll('""', '"') ?? match[2]!.trim());
    if (match[3] === ',') continue;
    if (row.some((each) => each !== '')) rows.push(row);
    row = [];
  }
  return rows;
}

/**
 * Parses a prize table.
 *
 * @throws Error with the line number and the fault
 */
export function prizesOf(text: string): Prize[] {
  const [head = [], ...rows] = rowsOf(text);
  const places = COLUMNS.map((name) => head.indexOf(name));
  const missing = COLUMNS.filter((_, i) => places[i]! < 0);
  if (missing.length > 0) throw new Error(`The first line must name ${missing.join(', ')}`);
  return rows.map((row, i) => {
    const [prizeName = '', ...numbers] = places.map((place) => row[place]);
    const [prizeTier, valueUsd, tickets] = numbers.map((each) => (each ? Number(each) : Number.NaN));
    if ([prizeTier, valueUsd, tickets].some((each) => each === undefined || Number.isNaN(each)))
      throw new Error(`Line ${i + 2}: prizeTier, valueUsd and count must be numbers`);
    return { prizeName, prizeTier: prizeTier!, valueUsd: valueUsd!, count: tickets! };
  });
}

export interface Preview {
  readonly takesUsd: number;
  readonly returnsUsd: number;
  readonly winning: number;
  /** Return to player: the fraction of the ticket sales that is paid back. */
  readonly rtp: number;
}

export function previewOf(prizes: readonly Prize[], priceUsd: number, poolSize: number): Preview {
  const takesUsd = priceUsd * poolSize;
  const returnsUsd = prizes.reduce((sum, prize) => sum + prize.valueUsd * prize.count, 0);
  const winning = prizes.reduce((sum, prize) => sum + prize.count, 0);
  return { takesUsd, returnsUsd, winning, rtp: returnsUsd / takesUsd };
}
