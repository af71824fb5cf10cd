/**
 * Reads prize tables as a game mathematician delivers them: CSV with the header
 * prizeName,prizeTier,valueUsd,count (RFC 4180), or JSON, which is an array of prizes or the whole body of a
 * raffle. The rules of the service are checked here, so that each fault is reported with its line.
 */
import { parse as parseJson, type ValueNode } from '@humanwhocodes/momoa';
import { type CsvError, parse as parseCsv } from 'csv-parse/sync';
import { Compile } from '#typebox/compile';
import { RaffleBody } from '../api/raffles/contract.js';
import { checkPrizeTable } from '../domain/games/prizeTable.js';
import { decimalTextToMicros, usdToMicros } from '../domain/money.js';
import { PATTERN_MESSAGES } from '../domain/schema.js';
import { schemaFaults } from '../domain/validation.js';
import { UsageError } from './command.js';

const PRIZE_MEMBERS = ['prizeName', 'prizeTier', 'valueUsd', 'count'] as const;
const AMOUNT_MEMBERS: readonly string[] = ['valueUsd', 'ticketPriceUsd'];
const NUMBER_TOKEN = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const NOT_EXACT = 'has more digits than the service can represent exactly';

/** Options of the command. A property of the raffle without an option must be in the prize file. */
export type RaffleOptions = Partial<Omit<RaffleBody, 'prizes'>>;

/** Command-line option for each property of the request body. */
const OPTIONS: Readonly<Record<string, string>> = {
  displayName: '--name',
  configName: '--config',
  ticketPriceUsd: '--price',
  poolSize: '--size',
};

interface Fault {
  /** Line number in the file, from 1. */
  readonly line: number;
  /** Message that starts with the name of the faulty property. */
  readonly message: string;
}

interface Read {
  /**
   * Unchecked content of the file: a raffle's body, or a part of it. Undefined if the file can't be parsed.
   */
  readonly body?: Record<string, unknown>;
  /** Returns the line of the property at a JSON Pointer, or of its nearest existing parent. */
  readonly lineOf: (path: string) => number;
  readonly faults: Fault[];
}

const unreadable = (faults: Fault[]): Read => ({ lineOf: () => 1, faults });

/**
 * Builds the body of `POST /partners/{id}/raffles` from the file and the options. Options override the file.
 * @returns the body, or all faults in the order of the file
 */
export function readRaffle(
  name: string,
  bytes: Uint8Array,
  options: RaffleOptions,
): { body: RaffleBody } | { faults: string[] } {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { faults: [`${name}: is not UTF-8`] };
  }
  const isJson = /\.json$/i.test(name) || /^\s*[[{]/.test(text);
  const { body: said, lineOf, faults } = isJson ? readJson(text) : readCsv(text);
  const ofOptions: string[] = [];
  const body = { ...said, ...options };
  if (said !== undefined) {
    const missing = Object.keys(OPTIONS).filter((member) => !Object.hasOwn(body, member));
    if (missing.length > 0) {
      throw new UsageError(
        `Missing values. Add them to the file, or use these options: ${missing.map((member) => OPTIONS[member]).join(', ')}`,
      );
    }
    for (const { path, message } of bodyFaults(body)) {
      const member = path.replace(/^\/(prizes\/\d+\/?)?/, '');
      const line = lineOf(path);
      if (Object.hasOwn(options, member)) ofOptions.push(`${OPTIONS[member]} ${message}`);
      // A property that could not be parsed is reported only once.
      else if (!faults.some((fault) => fault.line === line && fault.message.startsWith(member))) {
        faults.push({ line, message: `${member || 'the prize'} ${message}` });
      }
    }
  }
  if (faults.length + ofOptions.length === 0) return { body: body as unknown as RaffleBody };
  faults.sort((a, b) => a.line - b.line);
  return { faults: [...ofOptions, ...faults.map(({ line, message }) => `${name}:${line}: ${message}`)] };
}

const validator = Compile(RaffleBody);

function bodyFaults(body: Record<string, unknown>): { path: string; message: string }[] {
  const wrong = schemaFaults(validator, body, PATTERN_MESSAGES);
  if (wrong !== undefined) return wrong.faults;
  const checked = checkPrizeTable(body as unknown as RaffleBody);
  return 'faults' in checked ? checked.faults : [];
}

/**
 * Returns whether a double represents the amount exactly. This is false for an amount with too many digits.
 */
const isExact = (token: string): boolean => usdToMicros(Number(token)) === decimalTextToMicros(token);

function readCsv(text: string): Read {
  const faults: Fault[] = [];
  const fault = (line: number, message: string): void => void faults.push({ line, message });
  const rows = parseCsv(text, {
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    // A spreadsheet often ends with rows of empty cells.
    skip_records_with_empty_values: true,
    skip_records_with_error: true,
    on_skip: (error?: CsvError): undefined => {
      fault(Number(error?.lines ?? 1), error?.message.replace(/ at line \d+/, '') ?? 'is not valid CSV');
    },
    // The library's types do not describe the records that the option `info` produces.
  }) as unknown as { info: { lines: number }; record: string[] }[];
  const [header, ...records] = rows;
  const names = header?.record.map((name) => name.trim()) ?? [];
  const wrongNames = names.filter((name) => !PRIZE_MEMBERS.includes(name as 'count'));
  const isHeader =
    names.length === PRIZE_MEMBERS.length && PRIZE_MEMBERS.every((name) => names.includes(name));
  if (!isHeader) {
    const found = wrongNames.length > 0 ? `, but the file has «${wrongNames.join('», «')}»` : '';
    fault(header?.info.lines ?? 1, `the header must be ${PRIZE_MEMBERS.join(',')}${found}`);
    return unreadable(faults);
  }
  const lines: number[] = [];
  const prizes: object[] = [];
  for (const { info, record } of records) {
    if (record.length !== names.length) {
      fault(info.lines, `has ${record.length} fields, not ${names.length}`);
      continue;
    }
    const prize: Record<string, unknown> = {};
    names.forEach((name, place) => {
      const field = record[place]!;
      const token = field.trim();
      if (name === 'prizeName') prize[name] = field;
      else if (!NUMBER_TOKEN.test(token)) {
        fault(info.lines, `${name} must be a decimal number, not «${token}»`);
        // A valid number stands in for the faulty one, so that its fault is not reported a second time.
        prize[name] = 1;
      } else {
        prize[name] = Number(token);
        if (!isExact(token)) fault(info.lines, `${name} ${NOT_EXACT}`);
      }
    });
    lines.push(info.lines);
    prizes.push(prize);
  }
  if (prizes.length === 0 && faults.length > 0) return unreadable(faults);
  return {
    body: { prizes },
    faults,
    lineOf: (path) => lines[Number(/^\/prizes\/(\d+)/.exec(path)?.[1])] ?? 1,
  };
}

function readJson(text: string): Read {
  let root: ValueNode;
  try {
    root = parseJson(text, { mode: 'json' }).body;
    // The first parser provides the positions of values. JSON.parse then enforces stricter rules, for example
    // that no string contains a line break.
    JSON.parse(text);
  } catch (error) {
    const { message, line } = error as Error & { line?: number };
    return unreadable([
      { line: line ?? 1, message: `is not valid JSON: ${message.replace(/ \(\d+:\d+\)$/, '')}` },
    ]);
  }
  const lines = new Map<string, number>();
  const faults: Fault[] = [];
  /** Records the lines of all values, and reports faults that JSON.parse would ignore. */
  const look = (node: ValueNode, path: string): void => {
    const { line } = node.loc.start;
    lines.set(path, line);
    if (node.type === 'Array')
      for (const [place, { value }] of node.elements.entries()) look(value, `${path}/${place}`);
    if (node.type !== 'Object') return;
    const isPrize = /^\/prizes\/\d+$/.test(path);
    const seen = new Set<string>();
    for (const { name, value } of node.members) {
      const member = name.type === 'String' ? name.value : name.name;
      const at = value.loc.start.line;
      if (seen.has(member)) faults.push({ line: at, message: `${member} occurs twice` });
      seen.add(member);
      const known: readonly string[] = isPrize ? PRIZE_MEMBERS : [...Object.keys(OPTIONS), 'prizes'];
      if (!known.includes(member)) faults.push({ line: at, message: `«${member}» is not a known property` });
      const token = text.slice(value.loc.start.offset, value.loc.end.offset);
      if (AMOUNT_MEMBERS.includes(member) && value.type === 'Number' && !isExact(token)) {
        faults.push({ line: at, message: `${member} ${NOT_EXACT}` });
      }
      look(value, `${path}/${member}`);
    }
  };
  const isArray = root.type === 'Array';
  look(root, isArray ? '/prizes' : '');
  const value = JSON.parse(text);
  return {
    body: isArray ? { prizes: value } : value,
    faults,
    lineOf(path) {
      for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
        const line = lines.get(at);
        if (line !== undefined) return line;
      }
      return lines.get('') ?? 1;
    },
  };
}
