/** Formats fields of CSV (RFC 4180). */

/**
 * Matches texts that a spreadsheet takes for a formula, even after spaces or in full-width characters (OWASP,
 * CSV injection).
 */
export const FORMULA = /^\s*[=+\-@＝＋－＠]/u;

export type CsvText = (value: string) => string;

/** Quotes a text as a CSV field without changing it. */
const csvText: CsvText = (value) => `"${value.replaceAll('"', '""')}"`;

/**
 * Quotes a text. If a spreadsheet would run the text as a formula, an apostrophe is put in front, so that the
 * spreadsheet displays it as text.
 */
const escapedText: CsvText = (value) => csvText(FORMULA.test(value) ? `'${value}` : value);

/**
 * Returns the function that formats texts for a request: with an apostrophe before formulas if the request
 * asks for it, otherwise unchanged.
 */
export const csvTexts = ({ escapeFormulas }: { readonly escapeFormulas?: string }): CsvText =>
  escapeFormulas === 'true' ? escapedText : csvText;
