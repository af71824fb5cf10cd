/**
 * Tests that indexes of large tables are built while clients write to the tables, and that an invalid index
 * is rebuilt.
 */
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { makeIndexes } from '../../src/postgres/concurrentIndexes.js';
import { world } from '../setup/world.js';
import { until } from '../support/wait.js';

const { stores, sql } = world();

const valid = async (): Promise<string[]> => {
  const rows = await sql`
    SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid
    WHERE indisvalid AND relname IN ('adjustments_by_entry', 'blocks_not_exhausted', 'blocks_with_outcomes', 'rounds_unsettled') ORDER BY relname`;
  return rows.map((row) => row.relname as string);
};
const ALL = ['adjustments_by_entry', 'blocks_not_exhausted', 'blocks_with_outcomes', 'rounds_unsettled'];

test('the migrations create all indexes of large tables', async () => {
  expect(await valid()).toEqual(ALL);
});

test('rebuilds an invalid index of a large table without blocking writers', async () => {
  await sql`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'blocks_not_exhausted'::regclass`;
  const lines: string[] = [];
  const writing = await sql.reserve();
  await writing`BEGIN`;
  await writing`UPDATE blocks SET exhausted_at = NULL`;
  const client = new Client(stores.databaseUrl);
  await client.connect();
  onTestFinished(() => client.end());
  const made = makeIndexes(client, (line) => lines.push(line));
  await until(async () => {
    const rows = await sql`
      SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'
        AND pid <> pg_backend_pid()`;
    return rows.length > 0;
  }, 'the index waits for who wrote before it');
  await sql.begin(async (tx) => {
    await tx`SET LOCAL lock_timeout = '1s'`;
    await tx`UPDATE blocks SET exhausted_at = NULL`;
  });
  await writing`COMMIT`;
  writing.release();
  await made;
  expect(lines).toEqual(['created the index blocks_not_exhausted']);
  expect(await valid()).toEqual(ALL);
});
