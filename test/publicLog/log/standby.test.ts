/**
 * Tests the warning about an asynchronous standby of Postgres: after a failover the log may lack published
 * records.
 */
import pg from 'pg';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startLogged } from '../../support/service.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const WARNING = 'a Postgres standby is asynchronous: set LOG_COPY_DIR or make the standby synchronous';

let stores: OwnStores;
let sql: postgres.Sql;
let standby: pg.Client | undefined;
beforeEach(async () => {
  stores = await ownStores();
  sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
});
afterEach(async () => {
  // The connection executes a COPY that only ends with the connection.
  (standby as unknown as { connection: { stream: { destroy(): void } } })?.connection.stream.destroy();
  await sql.end();
  await stores.drop();
});

/** Opens a replication connection, as a standby does to its primary. */
async function follow(): Promise<void> {
  const [at] = await sql<{ lsn: string }[]>`SELECT pg_current_wal_flush_lsn() AS lsn`;
  const options = {
    connectionString: stores.databaseUrl,
    application_name: 'standby',
    replication: 'database',
  };
  standby = new pg.Client(options as pg.ClientConfig);
  standby.on('error', () => {});
  await standby.connect();
  standby.query(`START_REPLICATION PHYSICAL ${at!.lsn}`).catch(() => {});
  await until(async () => {
    const rows =
      await sql`SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'async'`;
    return rows.length === 1;
  }, 'the standby follows');
}

/** Returns whether a starting service logs the warning. */
async function warns(more: NodeJS.ProcessEnv = {}): Promise<boolean> {
  const service = await startLogged(stores, { CELLS: '2', ...more });
  await service.running.stop();
  return service.lines.some(({ msg, level }) => msg === WARNING && level === 40);
}

test('warns at a start only if Postgres has an asynchronous standby and LOG_COPY_DIR is not set', async () => {
  expect(await warns()).toBe(false);
  await follow();
  expect(await warns()).toBe(true);
  expect(await warns({ LOG_COPY_DIR: `${stores.dataDir}/log-copy` })).toBe(false);
});
