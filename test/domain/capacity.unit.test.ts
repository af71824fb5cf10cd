/** Tests the computed capacity for a load, and that docs/scaling.md shows what the command prints. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CAPACITY_ROWS, coresText, sizeText } from '../../src/cli/capacityCommand.js';
import { capacityOf, type Load } from '../../src/domain/capacity.js';
import { ROOT } from '../support/root.js';

const LOADS = [100, 1000, 10_000, 50_000];
const loadOf = (spins: number): Load => ({ spins, partners: 50, players: 100_000, days: 400 });
const of = (spins: number) => capacityOf(loadOf(spins));

describe('the capacity page', () => {
  const page = readFileSync(join(ROOT, 'docs', 'scaling.md'), 'utf8');

  test.each(CAPACITY_ROWS)('the capacity page shows the same %s as the command prints', (what, value) => {
    const cells = LOADS.map((spins) => value(of(spins), loadOf(spins)));
    expect(page).toContain(`| ${[what, ...cells].join(' | ')} |`);
  });
});

test('computes twice the disk space for twice the spins', () => {
  expect(of(2000).bytes.ledgerDay).toBe(2 * of(1000).bytes.ledgerDay);
  expect(of(2000).bytes.postgres).toBe(2 * of(1000).bytes.postgres);
});

test('computes one process of each kind for the lowest possible load', () => {
  expect(of(1)).toMatchObject({ frontEnds: 1, workers: 1, redisNodes: 1 });
});

test('computes more CPU for more partners, up to a hundred', () => {
  const cores = (partners: number): number =>
    capacityOf({ spins: 1000, partners, players: 1, days: 1 }).cores.frontEnd;
  expect(cores(100)).toBeGreaterThan(cores(10));
  expect(cores(1000)).toBe(cores(100));
});

test('prints a small share of a core with one digit that is not zero', () => {
  expect([0.000_126, 0.0042, 0.05, 0.1, 1.283].map(coresText)).toEqual([
    '0.0001',
    '0.004',
    '0.05',
    '0.10',
    '1.28',
  ]);
});

test('prints sizes with three digits in powers of a thousand', () => {
  expect([999, 999.6, 1500, 148_900_000_000, 4.64e12].map(sizeText)).toEqual([
    '999 B',
    '1 KB',
    '1.5 KB',
    '149 GB',
    '4.64 TB',
  ]);
});
