/** Brings the schema of a database up to date. */
import { Client, DatabaseError } from 'pg';
import { makeIndexes } from './concurrentIndexes.js';
import { postgresOptionsOf } from './postgresUrl.js';
import { SESSION_SQL } from './sessionSettings.js';

/** A statement that waits so long for a lock ends, so that nobody waits long behind it: a migration runs beside live traffic. */
const MIGRATION_LOCK_MS = 1000;
/** All of them are tried again that often: another process may be at it, or a long transaction hold a lock. */
const MIGRATION_TRIES = 300;
/** Names of the migrations that ran, from version 1.5.0 on. */
const MIGRATIONS_TABLE = 'schema_migrations';
/**
 * The schema of version 1.4.0, whose 56 migrations are recorded in the table `migrations`. That table stays as it is, so that a
 * process of version 1.4.0 still starts beside this version.
 */
const BASELINE = '0001_schema';
const LAST_OF_1_4_0 = '0056_sealed_voids';
/** Lock of the transaction that records the baseline. */
const BASELINE_LOCK = 7_310_019;
/** SQLSTATE lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Brings the schema up to date; of several processes that start at once, one does it and the others wait. A lock that is not free within
 * a second is tried again, five minutes at least, and held by no migration for long (docs/internals.md).
 * @throws Error where a version before 1.4.0 wrote the database; nothing is changed then
 */
export async function migrate(
  url: string,
  migrationsDir: string,
  log: (line: string) => void,
): Promise<void> {
  // Only here: it takes longer to load than all else of this file, and most programs migrate nothing.
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

/** Records the baseline as run in a database of version 1.4.0. @throws Error where an older version wrote the database */
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
          'A version before 1.4.0 wrote this database: start version 1.4.0 on it, wait until it is ready, then start this version',
        );
      // As node-pg-migrate makes it.
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

/** For the statement that sets what others depend on. */
const SETTINGS_WITHIN_MS = 8000;

/** Connects for statements that may take long, with the settings that they depend on. @param settings more of them */
async function withSession<T>(
  url: string,
  settings: string,
  run: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({
    ...postgresOptionsOf(url),
    // From the first statement on: a role's own may be shorter than it takes.
    statement_timeout: SETTINGS_WITHIN_MS,
    idle_in_transaction_session_timeout: SETTINGS_WITHIN_MS,
  });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(
      `${SESSION_SQL}; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; ${settings}`,
    );
    return await run(client);
  } finally {
    await client.end();
  }
}
