import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  CELL_MAX,
  entryTimeMsOfWords,
  firstIdAt,
  idsIn,
  makeEntryId,
  parseEntryId,
  SEQUENCE_MAX,
  streamIdBefore,
  streamIdOf,
} from '../../src/domain/entryId.js';
import { ENTRY_KINDS, entryCodesSql, entryOfCode } from '../../src/domain/ledgerEntry.js';

const parts = fc.record({
  timeMs: fc.integer({ min: 0, max: 2 ** 41 - 1 }),
  cell: fc.integer({ min: 0, max: CELL_MAX }),
  sequence: fc.integer({ min: 0, max: SEQUENCE_MAX }),
});

describe('ids of ledger entries', () => {
  test('splits a ledger entry id into the parts that it was made of, as a BigInt and as two words', () => {
    fc.assert(
      fc.property(parts, (made) => {
        const id = makeEntryId(made);
        expect(parseEntryId(id)).toEqual(made);
        expect(id < 2n ** 63n).toBe(true);
        const [high, low] = [Number(id >> 32n), Number(id & 0xffffffffn)];
        expect(entryTimeMsOfWords(high, low)).toBe(made.timeMs);
        expect(entryTimeMsOfWords(high | 0, low | 0)).toBe(made.timeMs);
      }),
    );
  });

  test('lays out a ledger entry id as 41 bits of time, 8 bits of the cell and 14 bits of the sequence', () => {
    expect(makeEntryId({ timeMs: 1, cell: 0, sequence: 0 })).toBe(2n ** 22n);
    expect(makeEntryId({ timeMs: 0, cell: 1, sequence: 0 })).toBe(2n ** 14n);
    expect(makeEntryId({ timeMs: 2 ** 41 - 1, cell: 255, sequence: 16_383 })).toBe(2n ** 63n - 1n);
  });

  test('all ledger entry ids of a millisecond lie between its first id and the first id of the next millisecond', () => {
    fc.assert(
      fc.property(parts, (made) => {
        const id = makeEntryId(made);
        expect(id >= firstIdAt(made.timeMs)).toBe(true);
        expect(id < firstIdAt(made.timeMs) + idsIn(1)).toBe(true);
      }),
    );
  });

  test('converts a ledger entry id to its Redis stream id, and to the stream id before it', () => {
    expect(streamIdOf(makeEntryId({ timeMs: 77, cell: 5, sequence: 9 }))).toBe('77-9');
    expect(streamIdBefore(makeEntryId({ timeMs: 77, cell: 5, sequence: 9 }))).toBe('77-8');
    expect(streamIdBefore(makeEntryId({ timeMs: 77, cell: 5, sequence: 0 }))).toBe('76-16383');
  });
});

describe('kinds of ledger entries', () => {
  test('finds each kind of ledger entry by its code, and rejects all other codes', () => {
    for (const definition of Object.values(ENTRY_KINDS))
      expect(entryOfCode(definition.code)).toBe(definition);
    for (const code of [0, 11, 255]) expect(() => entryOfCode(code)).toThrow(RangeError);
  });

  test('gives each kind of ledger entry the same counterpart account as the database view of postings', () => {
    const migration = readFileSync(
      join(import.meta.dirname, '../../src/postgres/migrations/0001_schema.sql'),
      'utf8',
    );
    const [, accounts] = /CASE kind (WHEN 1 THEN 'game:[^)]*?) END,/.exec(migration)!;
    const [rules, otherwise] = accounts!.split(/\s+ELSE /);
    const written = new Map(
      [...rules!.matchAll(/WHEN (\d+) THEN '(\w+):/g)].map(([, code, name]) => [code, name]),
    );
    const fallback = /'(\w+):/.exec(otherwise!)![1];
    for (const { code, counterpart } of Object.values(ENTRY_KINDS)) {
      // Ledger kinds without a counterpart account have no row in the database view.
      if (counterpart !== 'none') expect(written.get(String(code)) ?? fallback).toBe(counterpart);
    }
  });

  test('lists the codes of all ledger entry kinds that satisfy a condition, for use in SQL', () => {
    expect(entryCodesSql(({ takesEntryNumber }) => takesEntryNumber)).toBe('(1, 2, 4, 9)');
    expect(entryCodesSql(({ movesPartnerNet }) => movesPartnerNet)).toBe('(1, 6, 7, 8)');
  });
});
