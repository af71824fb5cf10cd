/** The pictures are of every page of the console: of each that it lists, and of each page of one thing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';

const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');

test('a picture is taken of each page of one thing that the console has', () => {
  const details = read('console', 'pages', 'index.ts').split('DETAILS')[1]!.split('};')[0]!;
  const ofOne = [...details.matchAll(/^ {2}'?([a-z-]+)'?: \(parts\)/gm)].map(([, path]) => path!);
  const shots = read('test', 'history', 'pictures.ts').matchAll(/\['[a-z-]+', [`']#\/([a-z-]+)[/?]/g);
  const taken = new Set([...shots].map(([, room]) => room!));
  expect(ofOne.length).toBeGreaterThan(4);
  expect(ofOne.filter((path) => !taken.has(path))).toEqual([]);
});
