/** Migrates the schema of a database to the newest version. */
import { Client, DatabaseError } from 'pg';
import { makeIndexes } from './concurrentIndexes.js';
import { StandbyError } from './postgresErrors.js';
import { PostgresHosts } from './postgresUrl.js';
import { SESSION_SQL } from './sessionSettings.js';

/**
 * Timeout of a migration's statement for getting a lock, in ms. Migrations run under live traffic, and other
 * statements must not wait long behind them.
 */
const MIGRATION_LOCK_MS = 1000;
/**
 * Maximum number of attempts to migrate. An attempt fails if another process is migrating, or if a long
 * transaction holds a lock.
 */
const MIGRATION_TRIES = 300;
/** Table with the names of applied migrations, from version 1.5.0 on. */
const MIGRATIONS_TABLE = 'schema_migrations';
/**
 * Schema of version 1.4.0, whose 56 migrations are recorded in the table `migrations`. That table is not
 * changed, so that a process of version 1.4.0 can still start while this version is running.
 */
const BASELINE = '0001_schema';
const LAST_OF_1_4_0 = '0056_sealed_voids';
/** Advisory lock of the transaction that records the baseline. */
const BASELINE_LOCK = 7_310_019;
/** SQLSTATE of a lock that could not be acquired in time (lock_not_available). */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * If several processes start at once, one of them migrates and the others wait. A lock that is not available
 * within a second is tried again for at least five minutes, and no migration holds a lock for long
 * (docs/internals.md).
 * @throws Error if a version before 1.4.0 wrote the database; nothing is changed in that case
 */
export async function migrate(
  url: string,
  migrationsDir: string,
  log: (line: string) => void,
): Promise<void> {
  // The module is loaded only here, because it takes longer to load than everything else in this file, and
  // most programs don't migrate.
  const { runner } = await import('node-pg-migrate');
  const run = () =>
    withSession(url, `SET lock_timeout = ${MIGRATION_LOCK_MS}`, async (dbClient) => {
      await recordBaseline(dbClient);
      await runner({
        dbClient,
        dir: migrationsDir,
        direction: 'up',
        migrationsTable: MIGRATIONS_TABLE,
        checkOrder: true,
        advisoryLockMode: 'wait',
        logger: { debug: () => {}, info: log, warn: log, error: log },
      });
    });
  for (let tries = 1; ; tries++) {
    try {
      await run();
      break;
    } catch (error) {
      const isLocked = error instanceof DatabaseError && error.code === LOCK_NOT_AVAILABLE;
      if (!isLocked || tries === MIGRATION_TRIES) throw error;
    }
  }
  await withSession(url, '', (client) => makeIndexes(client, log));
}

/**
 * Records the baseline as applied in a database of version 1.4.0.
 * @throws Error if an older version wrote the database
 */
async function recordBaseline(client: Client): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${BASELINE_LOCK})`);
    const { rows } = await client.query(
      `SELECT to_regclass('migrations') IS NOT NULL AS "isOlder", to_regclass('${MIGRATIONS_TABLE}') IS NOT NULL AS "isRecorded"`,
    );
    const { isOlder, isRecorded } = rows[0] as { isOlder: boolean; isRecorded: boolean };
    if (isOlder && !isRecorded) {
      const newest = await client.query('SELECT 1 FROM migrations WHERE name = $1', [LAST_OF_1_4_0]);
      if (newest.rows.length === 0)
        throw new Error(
          'This database was written by a version before 1.4.0. Start version 1.4.0 on it and wait until it is ready, then start this version.',
        );
      // This table definition must be the one that node-pg-migrate uses.
      await client.query(
        `CREATE TABLE ${MIGRATIONS_TABLE} (id serial PRIMARY KEY, name varchar(255) NOT NULL, run_on timestamp NOT NULL)`,
      );
      await client.query(`INSERT INTO ${MIGRATIONS_TABLE} (name, run_on) VALUES ($1, now())`, [BASELINE]);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

/** Timeout of the statement that sets the session settings, in ms. */
const SETTINGS_WITHIN_MS = 8000;

/**
 * Opens a session for long statements, with the required settings.
 * @param settings SQL of additional settings
 */
async function withSession<T>(
  url: string,
  settings: string,
  run: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await openClient(new PostgresHosts(url));
  try {
    await client.query(
      `${SESSION_SQL}; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; ${settings}`,
    );
    return await run(client);
  } finally {
    await client.end();
  }
}

/**
 * Connects to the first host that accepts writes.
 * @throws the error of the last host if none does
 */
async function openClient(hosts: PostgresHosts): Promise<Client> {
  for (let left = hosts.count; ; left--) {
    const client = new Client({
      ...hosts.options,
      ...hosts.place,
      // The timeout is set when the connection is made, because the timeouts configured for the database role
      // may be too short for the first statement.
      statement_timeout: SETTINGS_WITHIN_MS,
      idle_in_transaction_session_timeout: SETTINGS_WITHIN_MS,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query('SELECT pg_is_in_recovery() AS is_standby');
      if ((rows[0] as { is_standby: boolean }).is_standby) throw new StandbyError();
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (left === 1) throw error;
      hosts.failed(hosts.turn);
    }
  }
}
