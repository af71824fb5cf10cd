/**
 * Tests that frequent statements are parsed once on each connection, and still work after a newer version
 * adds columns to their tables.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findWork } from '../../src/app/roles/work.store.js';
import { newestOfAll } from '../../src/engine/catalog/catalog.store.js';
import { renewAndDivide } from '../../src/engine/cells/cells.store.js';
import { findObstacles } from '../../src/engine/recovery/obstacles.store.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Sql } from '../../src/postgres/connection.js';
import { nextDueMs } from '../../src/webhooks/deliveries.store.js';
import { freshStores } from '../setup/freshStores.js';
import { Cleanup } from '../support/cleanup.js';
import { ROOT } from '../support/root.js';
import { startService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { sources } from '../tidy/sources.js';

const cleanup = new Cleanup();
let stores: TestStores;

beforeAll(async () => {
  stores = await freshStores();
  cleanup.add(() => stores.drop());
  // Starting the service creates the schema.
  await (await startService(stores)).stop();
});
afterAll(() => cleanup.run());

function connect(isPooled: boolean): Sql {
  const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'parsed', isPooled, onError: () => {} });
  cleanup.add(() => sql.end());
  return sql;
}

const parsed = async (sql: Sql): Promise<bigint> =>
  (await sql<[{ n: bigint }]>`SELECT count(*) AS n FROM pg_prepared_statements`)[0].n;

test.each([
  [false, 1n],
  [true, 0n],
])(
  'prepares statements once on a connection, and never behind a pooler (behind a pooler: %s, prepared: %s)',
  async (isPooled, expected) => {
    const sql = connect(isPooled);
    for (const n of [1, 2, 3]) {
      const [row] = await sql.prepared<[{ n: number }]>`SELECT ${n}::int AS n`;
      expect(row.n).toBe(n);
    }
    expect(await parsed(sql)).toBe(expected);
  },
);

test('a prepared statement returns the same rows each time as one that is not prepared', async () => {
  const ask = (sql: Sql) => sql`
    SELECT n AS of_number, n * 3000000000::bigint AS big_number, n / 3.0::float8 AS share, n = 2 AS is_two, NULL AS nothing,
      'é' || n AS some_text, to_timestamp(n) AS made_at, jsonb_build_object('n', n) AS json_of_it, ARRAY[n, 2] AS list,
      decode('ff', 'hex') AS bytes FROM generate_series(1, ${3}::int) AS n`;
  const expected = await ask(connect(true));
  expect(expected[1]).toMatchObject({ ofNumber: 2, bigNumber: 6_000_000_000n, isTwo: true, nothing: null });
  const sql = connect(false);
  for (let times = 0; times < 3; times++) expect(await ask(sql)).toEqual(expected);
});

test('a prepared statement that failed works again, with the error of Postgres at its caller', async () => {
  const sql = connect(false);
  const divide = (by: number) => sql<{ n: number }[]>`SELECT 6 / ${by}::int AS n`;
  expect(await divide(2)).toEqual([{ n: 3 }]);
  const failure = (await divide(0).catch((error: unknown) => error)) as Error;
  expect(failure).toMatchObject({ code: '22012', stack: expect.stringContaining('parsedOnce.test') });
  expect(await divide(3)).toEqual([{ n: 2 }]);
});

test('no statement asks for all columns of a table with *', () => {
  // Adding a column to such a table would break the prepared statement.
  const found = sources(ROOT, ['src'], /\.ts$/).flatMap(({ path, text }) =>
    [...text.matchAll(/RETURNING \*|`\s*SELECT \* FROM [a-z_]+\b(?! ORDER BY entry_id DESC`)/g)].map(
      ([match]) => `${path}: ${match}`,
    ),
  );
  expect(found).toEqual([]);
});

test('prepared statements still work after a column is added to each of their tables', async () => {
  const sql = connect(false);
  const askAll = async (): Promise<void> => {
    // From the sixth execution of a statement on, Postgres keeps its plan.
    for (let times = 0; times < 7; times++) {
      await newestOfAll(sql);
      await nextDueMs(sql);
      await findObstacles(sql);
      await findWork(sql, [0, 1]);
      await renewAndDivide(sql, randomUUID(), [], 1);
    }
  };
  await askAll();
  expect(await parsed(sql)).toBe(5n);
  const tables = await sql<{ name: string }[]>`
    SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`;
  const other = connectPostgres(stores.databaseUrl, { max: 1, name: 'migrating', onError: () => {} });
  cleanup.add(() => other.end());
  await other`SELECT set_config('lock_timeout', '5s', false)`;
  await other`CREATE PROCEDURE add_columns(names text[]) LANGUAGE plpgsql AS $$
    DECLARE name text;
    BEGIN FOREACH name IN ARRAY names LOOP EXECUTE format('ALTER TABLE %I ADD COLUMN of_a_newer_version int', name); END LOOP; END $$`;
  await other`CALL add_columns(${`{${tables.map(({ name }) => name).join(',')}}`}::text[])`;
  await askAll();
});
