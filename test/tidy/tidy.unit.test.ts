/** Rules for the text of the sources: forbidden words, time limits in tests, and numbers of migrations. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isReservedName } from '../../src/domain/operator.js';
import { ROOT } from '../support/root.js';
import { sources } from './sources.js';

const CODE = [
  'clients/typescript/src',
  'console',
  'src',
  'workers',
  'lua',
  'openapi',
  'bench',
  'test',
  'tools',
  'vitest.config.ts',
];
const THIS = join('test', 'tidy', 'tidy.unit.test.ts');
const code = sources(ROOT, CODE, /\.(tsx?|mjs|lua|sql)$/).filter(({ path }) => path !== THIS);
const documents = [
  ...sources(ROOT, ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs'], /\.md$/),
  ...sources(ROOT, ['.ci', 'grafana', 'Dockerfile', 'docker-compose.yml', '.env.example'], /./),
];

/** Returns the lines that match a pattern, as `path:number: text`. */
const linesWith = (pattern: RegExp, files = [...code, ...documents]): string[] =>
  files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );

describe('words in the sources', () => {
  test('the sources do not use words that have been replaced by better names', () => {
    expect(linesWith(/\bKILL_AT\b|planted|\bclass Directory\b|\bpeers?\b/i)).toEqual([]);
  });

  test('comments refer to docs/contract.md, not to documents outside the project', () => {
    expect(linesWith(/\b(specification|choices(\.md)?),? \(?(section )?\d/i)).toEqual([]);
  });

  test('the sources name no folder of the machine on which the project was made', () => {
    const found = linesWith(/(^|[\s'"`(])\/work\b|\.\.\/shared\b|'\.\.', 'shared'/);
    // The public test corpora lie next to the project. A clone without them skips the tests that need them.
    expect(found.filter((line) => !line.startsWith('test/support/corpora.ts:'))).toEqual([]);
  });
});

test('no operator can have a name under which the program itself writes the audit log', () => {
  const actors = sources(ROOT, ['src'], /\.ts$/).flatMap(({ text }) =>
    [...text.matchAll(/(?:\bactor: |ACTOR = )'([^']+)'/g)].map((match) => match[1]!),
  );
  expect(actors.length).toBeGreaterThan(3);
  expect(actors.filter((name) => !isReservedName(name))).toEqual([]);
});

describe('the width of lines', () => {
  const WIDTH = 110;

  test(`comments and Lua scripts have at most ${WIDTH} columns; the formatter wraps all other code`, () => {
    const generated = /\.v1\.(d\.)?ts$/;
    const long = new RegExp(`^(?=\\s*(//|/?\\*)).{${WIDTH + 1}}`);
    const scripts = code.filter(({ path }) => path.endsWith('.lua'));
    expect(linesWith(new RegExp(`^.{${WIDTH + 1}}`), scripts)).toEqual([]);
    expect(
      linesWith(
        long,
        code.filter(({ path }) => !path.endsWith('.lua') && !generated.test(path)),
      ),
    ).toEqual([]);
  });
});

describe('time limits in tests', () => {
  test('tests compare no time with a constant, but use expectWithin and timeoutFor', () => {
    const constant = String.raw`\(?[\d_A-Z]+( [*+] [\d_A-Z]+)*\)?`;
    const bound = new RegExp(
      String.raw`expect\(.*(performance\.now|Date\.now\(\) -|[a-z]Ms\b|\bms\b|[eE]lapsed|[tT]ook|\(seconds\b).*\)\.toBeLessThan(OrEqual)?\(${constant}\)`,
    );
    expect(linesWith(bound, code)).toEqual([]);
  });
});

describe('file names in comments', () => {
  const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*$|^\s*-- .*$/gm;
  /**
   * Matches a file by its name, with as much of its path as the comment has, but not a member of `{@link
   * Name.sql}`.
   */
  const FILE = /(?<![\w*:./-])[a-z][\w./-]*\.(?:tsx?|mjs|lua|sql|md)\b(?![\w(])/g;

  test('comments name only files that exist', () => {
    const paths = [...code, ...documents].map(({ path }) => `/${path}`);
    const named = code.flatMap(({ path, text }) =>
      [...text.matchAll(COMMENT)].flatMap(([comment]) =>
        [...comment.matchAll(FILE)].map(([name]) => ({ path, name })),
      ),
    );
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter(({ name }) => !paths.some((each) => each.endsWith(`/${name}`)))).toEqual([]);
  });
});

test('SQL statements appear only in stores (*.store.ts) and in src/postgres', () => {
  const STATEMENT = /\b(?:sql|tx)(?:\.prepared)?(?:<[^`;]*>)?`/;
  const found = code.filter(({ path, text }) => path.startsWith('src/') && STATEMENT.test(text));
  expect(found.length).toBeGreaterThan(50);
  const isOwner = (path: string): boolean => path.endsWith('.store.ts') || path.startsWith('src/postgres/');
  expect(found.map(({ path }) => path).filter((path) => !isOwner(path))).toEqual([]);
});

test('migrations are numbered without a gap', () => {
  const names = readdirSync(join(ROOT, 'src', 'postgres', 'migrations')).sort();
  expect(names.map((name) => name.replace(/_\w+\.sql$/, ''))).toEqual(
    names.map((_, index) => String(index + 1).padStart(4, '0')),
  );
});
