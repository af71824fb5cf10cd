/** Fields of CSV (RFC 4180). */

/** What a spreadsheet takes for the beginning of a formula, also behind spaces and in full width (OWASP, CSV injection). */
const FORMULA = /^\s*[=+\-@＝＋－＠]/u;

/** A text as a field. */
export type CsvText = (value: string) => string;

/** A text as it is, quoted. */
const csvText: CsvText = (value) => `"${value.replaceAll('"', '""')}"`;

/** One that a spreadsheet would run as a formula gets an apostrophe in front, which makes it text there. */
const escapedText: CsvText = (value) => csvText(FORMULA.test(value) ? `'${value}` : value);

/** How a request wants its texts. */
export const csvTexts = ({ escapeFormulas }: { readonly escapeFormulas?: string }): CsvText =>
  escapeFormulas === 'true' ? escapedText : csvText;
