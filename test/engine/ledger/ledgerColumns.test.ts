/** Tests that every list of the ledger's columns matches the columns in Postgres. */
import { beforeAll, expect, test } from 'vitest';
import { COLUMNS } from '../../../src/books/archive/columns.js';
import { LEDGER, ledgerSql } from '../../../src/books/audit/auditColumns.js';
import { ENTRY } from '../../../src/domain/layouts.js';
import { LEDGER_MEMBERS } from '../../../src/domain/ledgerColumns.js';
import { allColumnsSql, COPY_LEDGER } from '../../../src/engine/ledger/ledgerRow.store.js';
import { world } from '../../setup/world.js';

interface StoredColumn {
  name: string;
  type: string;
  isNullable: boolean;
}

const { ownSql: sql } = world();
let stored: StoredColumn[];
let names: string[];

const columnsOf = (table: string): Promise<StoredColumn[]> => sql<StoredColumn[]>`
  SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS "isNullable"
  FROM pg_attribute WHERE attrelid = ${table}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`;

beforeAll(async () => {
  stored = await columnsOf('ledger');
  names = stored.map(({ name }) => name);
});

test('the ledger table has the declared columns in the declared order', () => {
  const declared = LEDGER_MEMBERS.map(([, { name, type, isNullable = false }]) => ({
    name,
    type,
    isNullable,
  }));
  expect(declared).toEqual(stored);
});

test('the table of kept entries of dropped days has every column of the ledger', async () => {
  expect(await columnsOf('kept_entries')).toEqual(stored);
});

test('flushes, archives and the audit use every column of the ledger', () => {
  expect(COPY_LEDGER).toContain(`(${names.join(', ')})`);
  expect(allColumnsSql()).toBe(names.join(', '));
  expect(COLUMNS.ledger.map(({ name }) => name)).toEqual(names);
  for (const hasPots of [false, true])
    expect(ledgerSql(hasPots)).toContain(names.map((name) => `l.${name}`).join(', '));
  expect(Object.values(LEDGER)).toEqual(Object.keys(LEDGER).map((_, place) => place));
});

test('an outbox entry has every ledger column except text columns', () => {
  const members = LEDGER_MEMBERS.filter(([member, { type }]) => type !== 'text' && member !== 'partnerId');
  expect(Object.keys(ENTRY.members)).toEqual(expect.arrayContaining(members.map(([member]) => member)));
});
