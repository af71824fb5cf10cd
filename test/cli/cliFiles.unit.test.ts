import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { confirm } from '../../src/cli/confirm.js';
import { printable, table } from '../../src/cli/output.js';
import { readRaffle } from '../../src/cli/prizeFile.js';
import { ROOT } from '../support/root.js';

const PRIZES = 'prizeName,prizeTier,valueUsd,count\n';
describe('prize files', () => {
  const options = { displayName: 'S', configName: 'S', ticketPriceUsd: 1, poolSize: 10 };
  const faults = (text: string | Uint8Array, more = {}, name = 'f'): string[] => {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const read = readRaffle(name, bytes, { ...options, ...more });
    return 'faults' in read ? read.faults : [];
  };

  test('reads a CSV prize file with exact decimals, or refuses it with the line of every fault', () => {
    expect(faults(`${PRIZES}A,1,0.000001,1\n\n"B",6,9e2,2\n`)).toEqual([]);
    // Spreadsheets add rows of empty cells. A row that lacks only some cells is faulty.
    expect(faults(`${PRIZES}A,1,1,1\n,,,\n , ,,\n,,,\n`)).toEqual([]);
    expect(faults(`${PRIZES}A,1,1,1\n,,1,\n`)).not.toEqual([]);
    expect(faults(`${PRIZES}A,1,0.0000001,1\n`)).toEqual([
      'f:2: valueUsd must be above 0 and at most 1000000000, with at most 6 decimals',
    ]);
    expect(faults(`${PRIZES}A,1,0.10000000000000000001,1\nB,1,8999999999.999999,1\n`)).toEqual([
      'f:2: valueUsd has more digits than the service can represent exactly',
      'f:3: valueUsd has more digits than the service can represent exactly',
    ]);
    expect(faults(`${PRIZES}A,1,1\n"B""",1,0x10,-1\n\n"C\nC",1,"1,5",\nD,1.5,0,11\n`)).toEqual([
      'f:2: has 3 fields, not 4',
      'f:3: valueUsd must be a decimal number, not «0x10»',
      'f:3: count must be >= 1',
      'f:6: valueUsd must be a decimal number, not «1,5»',
      'f:6: count must be a decimal number, not «»',
      'f:6: prizeName must have 1 to 128 Unicode characters, without control characters or lone surrogates',
      'f:7: prizeTier must be an integer',
    ]);
    expect(faults(`${PRIZES}A,1,1,6\nNo Win,1,1,6\n`)).toEqual([
      'f:1: prizes have 12 tickets in total, but poolSize is 10',
      'f:3: prizeName must not be «No Win»',
    ]);
    expect(faults(`${PRIZES}"A,1,1,1\n`)[0]).toMatch(/^f:\d: Quote Not Closed/);
    expect(faults(`${PRIZES}A"A,1,1,1\nB,0,1,1\n`)).toEqual([
      expect.stringMatching(/^f:2: Invalid Opening Quote/),
      'f:3: prizeTier must be >= 1',
    ]);
    expect(faults('name,prizeTier,valueUsd,count\nA,1,1,1\n')).toEqual([
      'f:1: the header must be prizeName,prizeTier,valueUsd,count, but the file has «name»',
    ]);
    expect(faults('')).toEqual(['f:1: the header must be prizeName,prizeTier,valueUsd,count']);
    expect(faults(PRIZES)).toEqual(['f:1: prizes must not have fewer than 1 items']);
    expect(faults(Buffer.from([0x41, 0xff]))).toEqual(['f: is not UTF-8']);
    expect(faults(`${PRIZES}A,1,1,1\n`, { poolSize: 0 })).toEqual(['--size must be >= 1']);
  });

  test('reads a JSON prize file with exact decimals, or refuses it with the line of every fault', () => {
    expect(faults('[{"prizeName":"A","prizeTier":1,"valueUsd":0.10,"count":1}]')).toEqual([]);
    expect(
      faults(
        `\ufeff[\n {"prizeName":"A","prizeTier":7,"valueUsd":1,"count":1},\n {"prizeName":"B","prizeTier":1,\n` +
          '  "valueUsd":0.10000000000000000001,"count":1, "count": 2, "odds": 5}\n]',
      ),
    ).toEqual([
      'f:2: prizeTier must be <= 6',
      'f:4: valueUsd has more digits than the service can represent exactly',
      'f:4: count occurs twice',
      'f:4: «odds» is not a known property',
    ]);
    expect(faults('[{"prizeName":"A",\n"prizeTier":1,\n"valueUsd":1}]')).toEqual(['f:1: count is required']);
    expect(faults('{"displayName":"x",\n"price":1}')).toEqual([
      'f:1: prizes is required',
      'f:2: «price» is not a known property',
    ]);
    expect(faults('[\n{"prizeName" "A"}]')).toEqual([expect.stringMatching(/^f:2: is not valid JSON: /)]);
    expect(faults('[\n')).toEqual([expect.stringMatching(/^f:\d: is not valid JSON: /)]);
    expect(faults('nothing', {}, 'f.json')).toEqual([
      expect.stringMatching(/^f\.json:1: is not valid JSON: /),
    ]);
  });
});
test('aligns amounts in a table, and escapes characters that would move the cursor', () => {
  const rows = [
    { name: 'a\x1b[31m\n', usd: 1000 },
    { name: '', usd: -0.5 },
    { name: '日本', usd: 0.000001 },
  ];
  const columns = [
    { heading: 'name', value: (row: (typeof rows)[0]) => row.name },
    { heading: 'USD', value: (row: (typeof rows)[0]) => row.usd, kind: 'usd' as const },
  ];
  expect(table(columns, rows)).toBe(
    [
      'name                      USD',
      'a\\u{1b}[31m\\u{a}  1000.00',
      '-                   -0.50',
      '日本                 0.000001\n',
    ].join('\n'),
  );
  expect(table(columns, [])).toBe('name  USD\nnone\n');
  expect(printable('a\u202eb')).toBe('a\\u{202e}b');
});

test.each([
  ['y\n', true],
  ['Yes\r\n', true],
  ['\n', false],
  ['yesterday\n', false],
  ['', false],
])(
  "asks for confirmation in a terminal before an action that can't be undone: %j",
  async (answer, isDone) => {
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const output = new PassThrough();
    const asked = confirm('This will revoke key 3.', {}, { input, output });
    input.end(answer);
    if (isDone) await expect(asked).resolves.toBeUndefined();
    else await expect(asked).rejects.toThrow('Nothing has changed');
    expect(String(output.read())).toContain('This will revoke key 3. Continue? [y/N] ');
  },
);

test('takes no secret as an option, because every user of the machine could read it; the secrets come from files', () => {
  const texts = readdirSync(join(ROOT, 'src/cli'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(ROOT, 'src/cli', file), 'utf8'));
  const options = texts.flatMap(
    (text) => text.match(/'--[a-z-]*(key|secret|token|password)[a-z-]* <[^>]+>'/g) ?? [],
  );
  expect(new Set(options.filter((option) => !option.includes('<FILE>')))).toEqual(
    // These options take a public key and the name of a new key.
    new Set(["'--log-key <VKEY>'", "'--new-key <NAME>'"]),
  );
  expect(options).toContain("'--secret-file <FILE>'");
});
