/**
 * Checks that error codes appear only in the error catalogue, match the contract, and are explained in
 * docs/errors.md. Needs no server.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ERRORS, type ErrorEntry } from '../../src/domain/errors.js';
import { ROOT } from '../support/root.js';
import { sources } from './sources.js';

/** The error codes of the contract (docs/contract.md §14) by HTTP status. */
const SPECIFIED: Readonly<Record<number, string>> = {
  400: '4101 4102 4103 4104 4105 4106 4107 4109 4202 4208 4216 4217 4220 4225 4604 4605',
  401: '4001 4002 4003 4004 4005',
  403: '4006 4115 4116 4207 4210 4213',
  404: '4201 4204 4205 4206 4209 4212 4214 4215 4219 4221 4301 4601',
  409: '4108 4110 4111 4114 4211 4222 4223 4224 4302 4303 4304 4602 4603',
  410: '4113 4218',
  426: '4112',
  429: '4291 4292 4293',
  500: '4606 5001 5003 5004 5005 5006 5007 5008 5009 5010',
  503: '4203 5002 5011 5012 5013',
};

const entries = Object.entries(ERRORS) as [keyof typeof ERRORS, ErrorEntry][];
// Generated types are excluded, because they list the codes of each operation.
const files = sources(ROOT, ['src', 'workers', 'lua'], /\.(ts|lua|sql)$/).filter(
  ({ path }) => path !== join('src', 'domain', 'errors.ts') && !path.endsWith('.d.ts'),
);
const all = files.map(({ text }) => text).join('\n');

describe('the error catalogue', () => {
  test('the error catalogue has each code of the contract once, with its status and retry class', () => {
    const specified = Object.entries(SPECIFIED).flatMap(([status, numbers]) =>
      numbers.split(' ').map((number) => `KS-${number} ${status}`),
    );
    expect(entries.map(([, { code, status }]) => `${code} ${status}`).sort()).toEqual(specified.sort());
    for (const [name, { code, status, retry }] of entries) {
      // Statuses 429 and 5xx may be retried. Of the other errors only KS-4110 may be retried.
      expect(retry === 'never', name).toBe(status < 500 && status !== 429 && code !== 'KS-4110');
    }
  });

  test('error codes appear in the source only in the error catalogue', () => {
    for (const { path, text } of files) {
      const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$|--.*$/gm, '').match(/KS-\d{4}/);
      expect(code, path).toBeNull();
    }
  });

  test('the source uses each code of the error catalogue that is not reserved', () => {
    const unused = entries.filter(
      ([name, { reserved }]) => !reserved && !new RegExp(`ERRORS\\.${name}\\b`).test(all),
    );
    expect(unused.map(([, { code }]) => code)).toEqual([]);
  });

  test('the source uses no reserved code of the error catalogue', () => {
    for (const [name, { reserved }] of entries)
      if (reserved) expect(all).not.toMatch(new RegExp(`ERRORS\\.${name}\\b`));
  });
});

describe('docs/errors.md', () => {
  const text = readFileSync(join(ROOT, 'docs', 'errors.md'), 'utf8');
  const rows = text
    .split('\n')
    .filter((line) => line.startsWith('| KS-'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  const CLASS = {
    never: 'never',
    later: 'later',
    'same-request-id': 'same requestId',
    'new-request-id': 'any requestId',
  };

  test('docs/errors.md has one row for each code of the error catalogue, in the same words', () => {
    const documented = rows.map(([code, status, retry, meaning]) => ({ code, status, retry, meaning }));
    const expected = entries.map(([, { code, status, retry, message }]) => ({
      code,
      status: String(status),
      retry: CLASS[retry],
      meaning: message,
    }));
    expect(documented).toEqual(expected);
    for (const [code, , , , advice] of rows) expect(advice, code).not.toBe('');
    const codes = new Set(entries.map(([, { code }]) => code));
    for (const [code] of text.matchAll(/KS-\d{4}/g)) expect(codes, code).toContain(code);
  });
});
