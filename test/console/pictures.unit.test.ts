/** Each page of the console has its pictures in docs/images/pages, light, dark and on a phone. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';

const LOOKS = ['light', 'dark', 'phone'];
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');
const routes = read('console', 'pages', 'index.ts');
const taker = read('bench', 'history', 'pictures.ts');

const missing = (names: readonly string[]): string[] =>
  names
    .flatMap((name) => LOOKS.map((look) => `${name}.${look}.png`))
    .filter((file) => !existsSync(join(ROOT, 'docs', 'images', 'pages', 'console', file)));

test('each page that the console lists has its pictures', () => {
  const listed = [...routes.matchAll(/listed\('([a-z-]+)'/g)].map(([, path]) => path!);
  expect(listed.length).toBeGreaterThan(15);
  expect(missing(listed)).toEqual([]);
});

test('each page of one thing is taken, and has its pictures', () => {
  const details = routes.split('DETAILS')[1]!.split('};')[0]!;
  const ofOne = [...details.matchAll(/^ {2}'?([a-z-]+)'?: \(parts\)/gm)].map(([, path]) => path!);
  const taken = [...taker.matchAll(/\['([a-z-]+)', [`']#\/([a-z-]+)[/?]/g)];
  expect(ofOne.length).toBeGreaterThan(4);
  expect(ofOne.filter((path) => !taken.some(([, , room]) => room === path))).toEqual([]);
  expect(missing(taken.map(([, name]) => name!))).toEqual([]);
});
