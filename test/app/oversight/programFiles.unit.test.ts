/** Tests the list of the program's files, and the differences found in files that do not match it. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import checkProgram, { MANIFEST, manifestOf, type ProgramPart } from '../../../workers/checkProgram.js';
import { ROOT } from '../../support/root.js';

const LOCK = {
  packages: {
    '': {},
    'node_modules/@deep/one': {},
    'node_modules/one': {},
    'node_modules/one/node_modules/two': {},
    'node_modules/elsewhere': { optional: true },
    'node_modules/tool': { dev: true },
  },
};
const FILES: Readonly<Record<string, string>> = {
  'dist/src/main.js': 'run()',
  'dist/src/Z.js': 'z',
  'dist/.tsbuildinfo': 'of the compiler',
  'dist/openapi/write.js': 'in no source',
  'lua/deal.lua': 'return 1',
  'src/main.ts': 'a source',
  'src/postgres/migrations/0001_first.sql': 'SELECT 1',
  'package.json': '{}',
  'package-lock.json': JSON.stringify(LOCK),
  'node_modules/@deep/one/index.js': '1',
  'node_modules/one/index.js': '1',
  'node_modules/one/node_modules/two/index.js': '2',
  'node_modules/tool/index.js': 'of development',
};
const LISTED = [
  'dist/.tsbuildinfo',
  'dist/openapi/write.js',
  'dist/src/Z.js',
  'dist/src/main.js',
  'lua/deal.lua',
  'node_modules/@deep/one/index.js',
  'node_modules/one/index.js',
  'node_modules/one/node_modules/two/index.js',
  'package-lock.json',
  'package.json',
  'src/postgres/migrations/0001_first.sql',
];

let root: string;
const put = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const differences = (part: ProgramPart = 'all') =>
  checkProgram({ root, part }).differences.map(({ path, what }) => `${what} ${path}`);

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'spindle-manifest-'));
  for (const [path, text] of Object.entries(FILES)) put(path, text);
  // The package of a database server creates such a link at its first start.
  symlinkSync('index.js', join(root, 'node_modules/one/link.js'));
  writeFileSync(join(root, MANIFEST), manifestOf(root));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test('lists exactly the files that run, sorted, in a form that sha256sum verifies', () => {
  const text = readFileSync(join(root, MANIFEST), 'utf8');
  expect(text.split('\n').map((line) => line.slice(66))).toEqual([...LISTED, '']);
  expect(execFileSync('sha256sum', ['-c', MANIFEST], { cwd: root, encoding: 'utf8' })).toContain(
    'dist/src/main.js: OK',
  );
});

test('finds no difference in unchanged program files, and identifies the list by its own hash', () => {
  const manifest = createHash('sha256')
    .update(readFileSync(join(root, MANIFEST)))
    .digest('hex');
  expect(checkProgram({ root, part: 'all' })).toEqual({
    manifest,
    files: LISTED.length,
    differences: [],
    differing: 0,
  });
  expect(checkProgram({ root, part: 'packages' }).files).toBe(3);
  expect(checkProgram({ root, part: 'program' }).files).toBe(8);
});

test('finds a changed, a missing and an added program file, and reports in which part of the program each file is', () => {
  put('dist/src/main.js', 'rum()');
  rmSync(join(root, 'lua/deal.lua'));
  put('src/postgres/migrations/0002_more.sql', 'DROP TABLE ledger');
  put('node_modules/one/node_modules/three/index.js', '3');
  expect(differences('program')).toEqual([
    'CHANGED dist/src/main.js',
    'MISSING lua/deal.lua',
    'ADDED src/postgres/migrations/0002_more.sql',
  ]);
  expect(differences('packages')).toEqual(['ADDED node_modules/one/node_modules/three/index.js']);
  expect(differences()).toHaveLength(4);
});

test('finds each file added to the build wherever it lies, but ignores development tools', () => {
  put('dist/openapi/types.js', 'later');
  put('dist/src/more.tsbuildinfo', 'later');
  put('node_modules/tool/index.js', 'later');
  expect(differences()).toEqual(['ADDED dist/openapi/types.js', 'ADDED dist/src/more.tsbuildinfo']);
});

test('keeps the output of check, openapi and types outside the build, so the list omits no file of the build', () => {
  const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');
  const [openApi] = /async function openApi[\s\S]*?\n}/.exec(read('tools', 'build.mjs'))!;
  expect(openApi).toContain("join('.cache'");
  for (const text of [openApi, read('.ci', 'check'), read('tsconfig.json').replace(/"outDir".*/, '')]) {
    expect(text.length).toBeGreaterThan(100);
    expect(text).not.toMatch(/\bdist\b/);
  }
});

test('counts all differing program files, and names the first hundred', () => {
  for (let file = 100; file < 300; file++) put(`lua/${file}.lua`, '');
  const found = checkProgram({ root, part: 'program' });
  expect(found.differing).toBe(200);
  expect(found.differences.map(({ path }) => path)).toEqual(
    Array.from({ length: 100 }, (_, place) => `lua/${100 + place}.lua`),
  );
});

test('reports a malformed list of program files, or one with paths outside the folder, as a difference', () => {
  for (const text of [
    '',
    'no list\n',
    `${'0'.repeat(64)}  ../secret\n`,
    `${'0'.repeat(64)}  /etc/passwd\n`,
  ]) {
    writeFileSync(join(root, MANIFEST), text);
    expect(differences()).toEqual([`CHANGED ${MANIFEST}`]);
  }
  rmSync(join(root, MANIFEST));
  expect(checkProgram({ root, part: 'all' })).toMatchObject({ manifest: null, files: 0, differing: 0 });
});

test('compares the program files with a list from elsewhere, such as a published list', () => {
  const other = join(root, 'published');
  writeFileSync(other, readFileSync(join(root, MANIFEST)));
  put('dist/src/main.js', 'rum()');
  writeFileSync(join(root, MANIFEST), manifestOf(root));
  expect(differences()).toEqual([]);
  expect(
    checkProgram({ root, part: 'program', manifest: other }).differences.map(({ path }) => path),
  ).toContain('dist/src/main.js');
});
