/**
 * Checks that docs/operations.md has a line for each table and each key, which says how its growth is
 * bounded.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';

const MIGRATIONS = join('src', 'postgres', 'migrations');
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');

/** Returns the names in the first column of a table below a heading of docs/operations.md. */
function namedUnder(heading: string): string[] {
  const section = read('docs', 'operations.md').split(`### ${heading}\n`)[1]!.split('\n#')[0]!;
  const rows = [...section.matchAll(/^\| (`[^|]+) \|(.*)\|$/gm)];
  for (const [row, , rest] of rows) expect(rest!.trim().split('|').at(-1), row).not.toBe('');
  return rows.flatMap(([, names]) => [...names!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)).sort();
}

/** Returns the tables that exist after all migrations. */
function tables(): string[] {
  const found = new Set<string>();
  for (const file of readdirSync(join(ROOT, MIGRATIONS)).sort()) {
    const statements =
      /(CREATE|DROP) TABLE (?:IF (?:NOT )?EXISTS )?(\w+)(?! PARTITION OF)|ALTER TABLE (\w+) RENAME TO (\w+)/g;
    for (const [, what, name, before, after] of read(MIGRATIONS, file).matchAll(statements)) {
      if (what === 'DROP') found.delete(name!);
      else found.add(what === 'CREATE' ? name! : after!);
      if (before !== undefined) found.delete(before);
    }
  }
  return [...found].sort();
}

/**
 * Returns the keys that src/engine/redis/keys.ts builds, without the parts that distinguish keys of one kind.
 */
function keys(): string[] {
  const found = new Set<string>();
  const functions = /^export const \w+Key = [^;]*;/gm;
  for (const [text] of read('src', 'engine', 'redis', 'keys.ts').matchAll(functions)) {
    const [, key] = /[`'](\{c\$\{cell\}\}:\w+|\{\w+\}|\w+:\w+)/.exec(text)!;
    found.add(key!.replace(/^\{c[^:]*/, '{cN}'));
  }
  return [...found].sort();
}

test('docs/operations.md lists exactly the tables that the migrations create', () => {
  expect(tables().length).toBeGreaterThan(40);
  expect(namedUnder('Tables')).toEqual(tables());
});

test('docs/operations.md lists exactly the kinds of Redis keys', () => {
  expect(keys().length).toBeGreaterThan(10);
  expect(namedUnder('Keys in Redis')).toEqual(keys());
});
