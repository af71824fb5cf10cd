/** Formats output for people without colours: aligned tables, and the properties of one object. */
import type { Column } from '../api/client/views/view.js';
import { microsToUsdText, usdToMicros } from '../domain/money.js';

export interface TableColumn<Row> {
  readonly heading: string;
  readonly value: (row: Row) => unknown;
  /** Alignment: `number` is right-aligned, `usd` is aligned at the decimal point. */
  readonly kind?: 'number' | 'usd';
}

const NAME_WIDTH_MIN = 16;
const GAP = '  ';
/** Characters that a terminal shows two columns wide. */
const WIDE =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|[！-｠]/u;
/** Characters that would move the cursor or change the direction of the following text. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Formats a value as one line without effects on a terminal. */
export function printable(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return text.replace(UNPRINTABLE, (each) => `\\u{${each.codePointAt(0)!.toString(16)}}`);
}

function width(text: string): number {
  let columns = 0;
  for (const { segment } of graphemes.segment(text)) columns += WIDE.test(segment) ? 2 : 1;
  return columns;
}

const spaces = (count: number): string => ' '.repeat(Math.max(0, count));

/**
 * Formats an amount of the API with at least two decimals; further decimals are shown if they are not zero.
 */
export function formatUsd(amount: unknown): string {
  if (typeof amount !== 'number') return printable(amount);
  const micros = usdToMicros(amount);
  // A sum of amounts may lie outside the range of a single amount.
  if (micros === undefined) return String(amount);
  const [whole, fraction = ''] = microsToUsdText(micros).split('.');
  return `${whole}.${fraction.padEnd(2, '0')}`;
}

function aligned(amounts: readonly string[]): string[] {
  const pointOf = (text: string): number => (text.includes('.') ? text.indexOf('.') : text.length);
  const whole = Math.max(0, ...amounts.map(pointOf));
  const fraction = Math.max(0, ...amounts.map((text) => text.length - pointOf(text)));
  return amounts.map(
    (text) => spaces(whole - pointOf(text)) + text + spaces(fraction - text.length + pointOf(text)),
  );
}

/** Formats a table, including the final line break. An empty table has the line `none` below its headings. */
export function table<Row>(columns: readonly TableColumn<Row>[], rows: readonly Row[]): string {
  const printed = columns.map(({ heading, value, kind }) => {
    const cells = rows.map((row) => (kind === 'usd' ? formatUsd(value(row)) : printable(value(row))));
    const texts = kind === 'usd' ? aligned(cells) : cells;
    const most = Math.max(width(heading), ...texts.map(width));
    return [heading, ...texts].map((text) => {
      const padding = spaces(most - width(text));
      return kind === undefined ? text + padding : padding + text;
    });
  });
  const lines = [...Array(rows.length + 1).keys()].map((line) =>
    printed
      .map((column) => column[line])
      .join(GAP)
      .trimEnd(),
  );
  if (rows.length === 0) lines.push('none');
  return `${lines.join('\n')}\n`;
}

/** Returns the name of a column or figure that the console shows, too. */
export const nameOf = ({ heading, kind }: Pick<Column<never>, 'heading' | 'kind'>): string =>
  kind === 'usd' ? `${heading.toLowerCase()} USD` : heading.toLowerCase();

/** Formats a value by its kind. Percentages have two decimals. */
export function textAs(kind: Column<never>['kind'], value: unknown): string {
  if (kind === 'usd') return formatUsd(value);
  if (kind !== 'percent') return printable(value);
  return Number.isFinite(value) ? `${(Number(value) * 100).toFixed(2)} %` : '-';
}

const ALIGNED = { usd: 'usd', number: 'number', count: 'number', percent: 'number' } as const;

/** Formats a list by the columns that the console shows, too. */
export const listOf = <Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string =>
  table(
    columns.map((column) => {
      const { value, kind = 'text' } = column;
      const to = kind in ALIGNED ? { kind: ALIGNED[kind as keyof typeof ALIGNED] } : {};
      return {
        heading: nameOf(column),
        value: kind === 'percent' ? (row: Row) => textAs(kind, value(row)) : value,
        ...to,
      };
    }),
    rows,
  );

function* members(value: object, prefix: string): Generator<[name: string, value: string]> {
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'object' && member !== null && !Array.isArray(member)) {
      yield* members(member, `${prefix}${name}.`);
    } else {
      yield [prefix + name, name.endsWith('Usd') ? formatUsd(member) : printable(member)];
    }
  }
}

/**
 * Formats each property as a line, including the final line break. Properties of nested objects are named by
 * their path.
 */
export function keyValues(value: object): string {
  const lines = [...members(value, '')];
  const most = Math.max(NAME_WIDTH_MIN, ...lines.map(([name]) => name.length));
  return lines.map(([name, text]) => `${name.padEnd(most)} ${text}\n`).join('');
}
