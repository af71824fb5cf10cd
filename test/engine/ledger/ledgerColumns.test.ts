/** The ledger's columns in Postgres, and every list that must have all of them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { COLUMNS } from '../../../src/books/archive/columns.js';
import { LEDGER, ledgerSql } from '../../../src/books/audit/auditColumns.js';
import { ENTRY } from '../../../src/domain/layouts.js';
import { LEDGER_MEMBERS } from '../../../src/domain/ledgerColumns.js';
import { allColumnsSql, COPY_LEDGER } from '../../../src/engine/ledger/ledgerRow.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { freshStores } from '../../setup/freshStores.js';
import { ROOT } from '../../support/root.js';
import type { TestStores } from '../../support/stores.js';

interface StoredColumn {
  name: string;
  type: string;
  isNullable: boolean;
}

let stores: TestStores;
let sql: Sql;
/** Of the ledger, as Postgres has them. */
let stored: StoredColumn[];
let names: string[];

const columnsOf = (table: string): Promise<StoredColumn[]> => sql<StoredColumn[]>`
  SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS "isNullable"
  FROM pg_attribute WHERE attrelid = ${table}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`;

beforeAll(async () => {
  stores = await freshStores();
  sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  stored = await columnsOf('ledger');
  names = stored.map(({ name }) => name);
});
afterAll(async () => {
  await sql?.end();
  await stores?.drop();
});

test('the ledger has the declared columns, in their order', () => {
  const declared = LEDGER_MEMBERS.map(([, { name, type, isNullable = false }]) => ({
    name,
    type,
    isNullable,
  }));
  expect(declared).toEqual(stored);
});

test('the entries of dropped days that are kept have every column of the ledger', async () => {
  expect(await columnsOf('kept_entries')).toEqual(stored);
});

test('a flush copies, an archive holds, and the audit reads every column of the ledger', () => {
  expect(COPY_LEDGER).toContain(`(${names.join(', ')})`);
  expect(allColumnsSql()).toBe(names.join(', '));
  expect(COLUMNS.ledger.map(({ name }) => name)).toEqual(names);
  for (const hasPots of [false, true])
    expect(ledgerSql(hasPots)).toContain(names.map((name) => `l.${name}`).join(', '));
  expect(Object.values(LEDGER)).toEqual(Object.keys(LEDGER).map((_, place) => place));
});

test('an entry of the outbox has every column that is no text', () => {
  const members = LEDGER_MEMBERS.filter(([member, { type }]) => type !== 'text' && member !== 'partnerId');
  expect(Object.keys(ENTRY.members)).toEqual(expect.arrayContaining(members.map(([member]) => member)));
});

test('the documentation of the archive names every column of the ledger', () => {
  const [, listed] = /^\| `ledger\.parquet` \|[^|]*\| ([^|]*) \|$/m.exec(
    readFileSync(join(ROOT, 'docs/archive.md'), 'utf8'),
  )!;
  expect(listed).toBe(names.map((name) => `\`${name}\``).join(', '));
});
