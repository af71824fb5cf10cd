/** Formats fields of CSV (RFC 4180). */

/**
 * Matches texts that a spreadsheet takes for a formula, even after spaces or in full-width characters (OWASP,
 * CSV injection).
 */
const FORMULA = /^\s*[=+\-@＝＋－＠]/u;

/** Matches texts that a spreadsheet shows as another number: `7412907446960128010`, `12e4`. */
const OTHER_NUMBER = /^(\d{16,}|\d+e\d+)$/i;

/** Returns whether a spreadsheet would show anything else than this text. */
export const isChangedBySpreadsheet = (text: string): boolean =>
  FORMULA.test(text) || OTHER_NUMBER.test(text);

export type CsvText = (value: string) => string;

/** Quotes a text as a CSV field without changing it. */
const csvText: CsvText = (value) => `"${value.replaceAll('"', '""')}"`;

/**
 * Quotes a text. If a spreadsheet would run the text as a formula, or round it as a number, an apostrophe is
 * put in front, so that the spreadsheet displays it as text.
 */
const escapedText: CsvText = (value) => csvText(isChangedBySpreadsheet(value) ? `'${value}` : value);

/**
 * Returns the function that formats texts for a request: with an apostrophe before formulas and long numbers
 * if the request asks for it, otherwise unchanged.
 */
export const csvTexts = ({ escapeFormulas }: { readonly escapeFormulas?: string }): CsvText =>
  escapeFormulas === 'true' ? escapedText : csvText;
