/**
 * Tests that nothing in the public log predicts outcomes, and that the checks of prediction.ts find
 * deliberate leaks.
 */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ParSheet } from '../../../src/domain/par.js';
import { parSheet } from '../../support/sheets.js';
import { classesOf, type Leak, loggedBlocks, predictionsOf } from './prediction.js';

const sheet = parSheet('classic-3-reel') as unknown as ParSheet;
const classes = classesOf(sheet);

test('no public data of the log predicts any of 1,000,000 outcomes better than chance', () => {
  const blocks = loggedBlocks(sheet, 245, 512);
  expect(blocks.reduce((sum, { codes }) => sum + codes.length, 0)).toBeGreaterThan(1_000_000);
  const { tests, bound, smallest } = predictionsOf(blocks, classes);
  expect(tests).toBeGreaterThan(10_000);
  expect(smallest.p, `${smallest.name} (${tests} tests)`).toBeGreaterThan(bound);
});

test('no guessable value in the public log reveals the outcome of a block with a single outcome', () => {
  const { bound, smallest } = predictionsOf(loggedBlocks(sheet, 50, 1), classes);
  expect(smallest.p, smallest.name).toBeGreaterThan(bound);
});

const wins = (codes: Uint16Array): number =>
  codes.reduce((sum, code) => sum + (classes[code]! > 0 ? 1 : 0), 0);
const none = Buffer.alloc(32);
const same = Buffer.alloc(32, 7);
const leaks: [name: string, count: number, leak: Leak, found: RegExp][] = [
  [
    'a nonce that repeats',
    64,
    { nonces: (count) => Buffer.concat(Array.from({ length: count }, () => same)) },
    /^siblings, by nonces/,
  ],
  [
    'a salt and a nonce that are known',
    1,
    { salt: () => none, nonces: () => none },
    /^commitments, by salts/,
  ],
  [
    'a salt that is chosen by the first outcome',
    64,
    {
      salt: (codes, commit) => {
        for (;;) {
          const salt = randomBytes(32);
          if ((commit(salt)[0]! & 1) === Math.min(1, classes[codes[0]!]!)) return salt;
        }
      },
    },
    /^bit 0 of commitment, and the first outcome$/,
  ],
  [
    'an order that follows what the blocks hold',
    64,
    { order: (one, other) => wins(one) - wins(other) },
    /of length and place, and wins$/,
  ],
];
test.each(leaks)('finds the deliberate leak of a public log with %s', (_, count, leak, name) => {
  const { bound, smallest } = predictionsOf(loggedBlocks(sheet, 50, count, leak), classes);
  expect(smallest.p).toBeLessThan(bound);
  expect(smallest.name).toMatch(name);
});
