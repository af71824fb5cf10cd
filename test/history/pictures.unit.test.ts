/**
 * Tests that pictures are taken of every page of the console: each listed page and each kind of detail page.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';

const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');

test('takes a picture of each kind of detail page that the console has', () => {
  const details = read('console', 'pages', 'index.ts').split('DETAILS')[1]!.split('};')[0]!;
  const ofOne = [...details.matchAll(/^ {2}'?([a-z-]+)'?: \(parts\)/gm)].map(([, path]) => path!);
  const shots = read('test', 'history', 'pictures.ts').matchAll(/\['[a-z-]+', [`']#\/([a-z-]+)[/?]/g);
  const taken = new Set([...shots].map(([, room]) => room!));
  expect(ofOne.length).toBeGreaterThan(4);
  expect(ofOne.filter((path) => !taken.has(path))).toEqual([]);
});
