/** A standby of Postgres that is asynchronous: after a failover the log may lack what was published, so the start warns. */
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
  // It is in the middle of a copy, which nothing but its end ends.
  (standby as unknown as { connection: { stream: { destroy(): void } } })?.connection.stream.destroy();
  await sql.end();
  await stores.drop();
});

/** What a standby is to its primary: a connection that streams its log. */
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

/** Whether a service that starts warns. */
async function warns(more: NodeJS.ProcessEnv = {}): Promise<boolean> {
  const service = await startLogged(stores, { CELLS: '2', ...more });
  await service.running.stop();
  return service.lines.some(({ msg, level }) => msg === WARNING && level === 40);
}

test('a start warns of an asynchronous standby, unless the log is copied, and of none where there is none', async () => {
  expect(await warns()).toBe(false);
  await follow();
  expect(await warns()).toBe(true);
  expect(await warns({ LOG_COPY_DIR: `${stores.dataDir}/log-copy` })).toBe(false);
});
