/** Fields of CSV (RFC 4180). */

/** What a spreadsheet takes for the beginning of a formula, also behind spaces and in full width (OWASP, CSV injection). */
const FORMULA = /^\s*[=+\-@＝＋－＠]/u;

/** A text, quoted. One that a spreadsheet would run as a formula gets an apostrophe in front, which makes it text there. */
export const csvText = (value: string): string =>
  `"${(FORMULA.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`;
