/** Files that the browser keeps, and what is put on the clipboard. */

/** A field as RFC 4180 has it; one that a spreadsheet would take for a formula begins with an apostrophe. */
function field(value: string | number): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param rows each with a field for each heading */
export const csvOf = (headings: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [headings, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');

/** Hands a text to the browser as a file. */
export function save(name: string, text: string, type = 'text/csv'): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  Object.assign(link, { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}
