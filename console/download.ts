/** Creates CSV files, saves files by the browser, and copies text to the clipboard. */

/**
 * Encodes a field by RFC 4180. A text that a spreadsheet would interpret as a formula gets a leading
 * apostrophe.
 */
function field(value: string | number): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Encodes rows as CSV text.
 *
 * @param rows rows with one field for each heading
 */
export const csvOf = (headings: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [headings, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');

/** Saves a text as a file by the browser's download. */
export function save(name: string, text: string, type = 'text/csv'): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  Object.assign(link, { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}
