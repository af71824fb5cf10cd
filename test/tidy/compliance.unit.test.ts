/**
 * Checks that every row of docs/compliance.md names an existing test, and that each clause in the state "met"
 * has one.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';

const STATES = ['met', 'partial', 'open', 'partner', 'lab'];

/**
 * Returns the faults in the table of a page.
 * @param textOf returns the text of a test file, or undefined if it does not exist
 */
function faults(page: string, textOf: (file: string) => string | undefined): string[] {
  const table = (page.split('\n| Clause |')[1] ?? '').split('\n## ')[0]!;
  const rows = table
    .split('\n')
    .slice(2)
    .filter((line) => line.startsWith('|'));
  return rows.flatMap((line) => {
    const [clause = '', , , , named = '', state = '', ...more] = line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim());
    if (more.length > 0 || !STATES.includes(state)) return [`${clause}: no row of six cells with a state`];
    if (named === '') return state === 'met' ? [`${clause}: met without a test`] : [];
    const [, file, title] = /^`([^`]+)`: (.+)$/.exec(named) ?? [];
    if (file === undefined || title === undefined) return [`${clause}: no file and title of a test`];
    const text = textOf(file);
    if (text === undefined) return [`${clause}: there is no file ${file}`];
    const isThere = text.includes(`test('${title}'`) || text.includes(`('${title}'`);
    return isThere ? [] : [`${clause}: ${file} has no test «${title}»`];
  });
}

const page = readFileSync(join(ROOT, 'docs/compliance.md'), 'utf8');
const textOf = (file: string): string | undefined =>
  existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8') : undefined;

test('the compliance page names a test for each met clause, and every named test exists', () => {
  expect(faults(page, textOf)).toEqual([]);
  expect(page.match(/\| met \|/g)!.length).toBeGreaterThan(10);
});

test('the check of the compliance page finds rows without a test, or with a missing file or title', () => {
  const head = '\n| Clause | Source | Asks | Where | Test | State |\n|---|---|---|---|---|---|\n';
  const row = (named: string, state: string): string =>
    `| 1.1 | read | something | here | ${named} | ${state} |\n`;
  const own = 'test/tidy/compliance.unit.test.ts';
  const lines =
    row('', 'met') +
    row(`\`${own}\`: no such title`, 'met') +
    row('`test/none.ts`: a', 'partial') +
    row('', 'done');
  expect(faults(head + lines, textOf)).toEqual([
    '1.1: met without a test',
    `1.1: ${own} has no test «no such title»`,
    '1.1: there is no file test/none.ts',
    '1.1: no row of six cells with a state',
  ]);
});
