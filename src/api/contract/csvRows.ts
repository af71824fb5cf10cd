/** Renders rows as CSV. The members of a row are the columns. */
import type { CsvText } from '../../domain/csv.js';
import { ExactNumber } from '../../domain/exactJson.js';

export const csvHead = (row: object): string => `${Object.keys(row).join(',')}\r\n`;

/** Null becomes an empty field. */
export function csvLines(rows: readonly object[], csvText: CsvText): string {
  const field = (value: unknown): string => {
    if (value === null || value === undefined) return '';
    return typeof value === 'number' || value instanceof ExactNumber ? String(value) : csvText(String(value));
  };
  return rows.map((row) => `${Object.values(row).map(field).join(',')}\r\n`).join('');
}
