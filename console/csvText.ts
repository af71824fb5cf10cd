/** Creates CSV files. */
import { isChangedBySpreadsheet } from '../src/domain/csv.js';

/**
 * Encodes a field by RFC 4180. A text that a spreadsheet would run as a formula, or round as a
 * number, gets a leading apostrophe.
 */
function field(value: string | number): string {
  const text = typeof value === 'string' && isChangedBySpreadsheet(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param rows rows with one field for each heading */
export const csvOf = (headings: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [headings, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');
