/** What is printed for people: aligned tables, and the members of one thing. Never coloured. */
import { microsToUsdText, usdToMicros } from '../domain/money.js';

export interface TableColumn<Row> {
  readonly heading: string;
  readonly value: (row: Row) => unknown;
  /** `number` is aligned right, `usd` at the decimal point. */
  readonly kind?: 'number' | 'usd';
}

const NAME_WIDTH_MIN = 16;
const GAP = '  ';
/** Shown as two columns by a terminal. */
const WIDE =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|[！-｠]/u;
/** What would move the cursor, or turn the direction of what follows. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** A value as one line that does nothing to a terminal. */
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

/** An amount of the API with two decimals at least; the others are shown where they are not zero. */
export function formatUsd(amount: unknown): string {
  if (typeof amount !== 'number') return printable(amount);
  const micros = usdToMicros(amount);
  // A sum may be more than an amount can be.
  if (micros === undefined) return String(amount);
  const [whole, fraction = ''] = microsToUsdText(micros).split('.');
  return `${whole}.${fraction.padEnd(2, '0')}`;
}

/** Amounts with their decimal points below each other. */
function aligned(amounts: readonly string[]): string[] {
  const pointOf = (text: string): number => (text.includes('.') ? text.indexOf('.') : text.length);
  const whole = Math.max(0, ...amounts.map(pointOf));
  const fraction = Math.max(0, ...amounts.map((text) => text.length - pointOf(text)));
  return amounts.map(
    (text) => spaces(whole - pointOf(text)) + text + spaces(fraction - text.length + pointOf(text)),
  );
}

/** Lines with their line ends. Without rows it says so below the headings. */
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

function* members(value: object, prefix: string): Generator<[name: string, value: string]> {
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'object' && member !== null && !Array.isArray(member)) {
      yield* members(member, `${prefix}${name}.`);
    } else {
      yield [prefix + name, name.endsWith('Usd') ? formatUsd(member) : printable(member)];
    }
  }
}

/** A line for each member, with its line end; those of members that are objects are named by their path. */
export function keyValues(value: object): string {
  const lines = [...members(value, '')];
  const most = Math.max(NAME_WIDTH_MIN, ...lines.map(([name]) => name.length));
  return lines.map(([name, text]) => `${name.padEnd(most)} ${text}\n`).join('');
}
