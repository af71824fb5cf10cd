/**
 * Checks that every `npm run …` named in code and documents exists, and so do the programs and test files
 * that it runs.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../support/root.js';
import { sources } from './sources.js';

interface Program {
  readonly program: string;
  readonly options: readonly string[];
}

const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const groups = JSON.parse(read('tools', 'programs.json')) as Record<string, Record<string, Program>>;
/** The changelog is exempt, because an entry names the scripts of its version. */
const HISTORY = 'CHANGELOG.md';
const PLACES = [
  '.ci',
  'clients/typescript/src',
  'bench',
  'docs',
  'grafana',
  'lua',
  'src',
  'test',
  'tools',
  'workers',
  'Dockerfile',
];
const documents = sources(ROOT, ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'], /\.md$/);
const all = [...sources(ROOT, PLACES, /./), ...documents, ...sources(ROOT, ['package.json'], /./)].filter(
  ({ path }) => path !== HISTORY,
);
/** Returns the matches of a pattern in all texts, as `path: match`. */
const found = (pattern: RegExp): { readonly path: string; readonly words: readonly string[] }[] =>
  all.flatMap(({ path, text }) => [...text.matchAll(pattern)].map(([, ...words]) => ({ path, words })));

test('package.json has every script that code and documents name', () => {
  const named = found(/\bnpm run (?:--silent )?([a-z][\w:-]*)/g);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter(({ words: [script] }) => scripts[script!] === undefined)).toEqual([]);
});

describe('programs of bench and chaos', () => {
  test('every bench or chaos program that code and documents name exists', () => {
    const named = found(/\bnpm run (?:--silent )?(bench|chaos)\s+--[\s*]+(\S[\w-]*)/g);
    expect(named.length).toBeGreaterThan(20);
    const isThere = ([group, name]: readonly string[]): boolean =>
      name === 'NAME' || Object.hasOwn(groups[group!]!, name!);
    expect(named.filter(({ words }) => !isThere(words))).toEqual([]);
  });

  test('every bench or chaos program reads each option that its help lists', () => {
    const unread = Object.values(groups)
      .flatMap((programs) => Object.values(programs))
      .flatMap(({ program, options }) => {
        const text = read(`${program}.ts`);
        const whole = text.includes('SHAPE_OPTIONS') ? text + read('bench', 'shape.ts') : text;
        const told = options.flatMap((line) =>
          [...line.matchAll(/(?<!\S)--([a-z-]+)/g)].map(([, name]) => name!),
        );
        return told
          .filter((name) => !new RegExp(`['\\s]${name}'?: \\{`).test(whole))
          .map((name) => `${program} --${name}`);
      });
    expect(unread).toEqual([]);
  });
});

test('every program that a script or programs.json names exists', () => {
  const run = Object.values(scripts).flatMap((script) => [
    ...script.matchAll(/tools\/run\.mjs (\w+)(?: (\w+))?/g),
  ]);
  expect(run.length).toBeGreaterThan(5);
  for (const [, group, name] of run) {
    expect(Object.keys(groups)).toContain(group);
    if (name !== undefined) expect(Object.keys(groups[group!]!)).toContain(name);
  }
  const programs = Object.values(groups).flatMap((each) => Object.values(each));
  expect(programs.filter(({ program }) => !existsSync(join(ROOT, `${program}.ts`)))).toEqual([]);
});

test('every pre or post script in package.json belongs to another script', () => {
  // This script is npm's own hook, which runs at the end of `npm ci`.
  const own = 'postinstall';
  const hooks = Object.keys(scripts).filter((name) => /^(pre|post)/.test(name) && name !== own);
  expect(hooks.filter((name) => scripts[name.replace(/^(pre|post)/, '')] === undefined)).toEqual([]);
});

/** Expands a pattern of vitest.config.ts, so `{a,b}` gives both alternatives. */
function alternativesOf(pattern: string): string[] {
  const [, before, list, after] = /^(.*?)\{(.*?)\}(.*)$/.exec(pattern) ?? [];
  if (list === undefined) return [pattern];
  return list.split(',').flatMap((each) => alternativesOf(`${before}${each}${after}`));
}

test('every test file that vitest.config.ts names exists', () => {
  const config = read('vitest.config.ts');
  const listed = (name: string): string[] => {
    const names = new RegExp(`const ${name} = \`([^\`]+)\``).exec(config)![1]!.trim().split(/\s+/);
    return names.map((each) => `${each}.test.ts`);
  };
  const written = [...config.matchAll(/'(test\/[^'*]+\.ts)'/g)].map(([, path]) => path!);
  const named = [
    ...[...listed('FAULTS').map((path) => `test/${path}`), ...written].flatMap(alternativesOf),
    ...listed('LONGEST').map((name) => `*/${name}`),
  ];
  expect(named.length).toBeGreaterThan(90);
  const files = sources(ROOT, ['test'], /\.ts$/).map(({ path }) => path);
  const isThere = (pattern: string): boolean => {
    const [start, end] = pattern.split('*');
    return files.some((file) =>
      end === undefined ? file === start : file.startsWith(start!) && file.endsWith(end),
    );
  };
  expect(named.filter((pattern) => !isThere(pattern))).toEqual([]);
});
