/** Brings the schema of a database up to date. */
import { Client, DatabaseError } from 'pg';
import { makeIndexes } from './concurrentIndexes.js';
import { connectionOptionsOf } from './connectionOptions.js';
import { SESSION_SQL } from './sessionSettings.js';

/** A statement that waits so long for a lock ends, so that nobody waits long behind it: a migration runs beside live traffic. */
const MIGRATION_LOCK_MS = 1000;
/** All of them are tried again that often: another process may be at it, or a long transaction hold a lock. */
const MIGRATION_TRIES = 300;
/** SQLSTATE lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Brings the schema up to date; of several processes that start at once, one does it and the others wait. A lock that is not free within
 * a second is tried again, five minutes at least, and held by no migration for long (docs/internals/compatibility.md).
 */
export async function migrate(
  url: string,
  migrationsDir: string,
  log: (line: string) => void,
): Promise<void> {
  // Only here: it takes longer to load than all else of this file, and most programs migrate nothing.
  const { runner } = await import('node-pg-migrate');
  const run = () =>
    withSession(url, `SET lock_timeout = ${MIGRATION_LOCK_MS}`, (dbClient) =>
      runner({
        dbClient,
        dir: migrationsDir,
        direction: 'up',
        migrationsTable: 'migrations',
        checkOrder: true,
        advisoryLockMode: 'wait',
        logger: { debug: () => {}, info: log, warn: log, error: log },
      }),
    );
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

/** For the statement that sets what others depend on. */
const SETTINGS_WITHIN_MS = 8000;

/** Connects for statements that may take long, with the settings that they depend on. @param settings more of them */
async function withSession<T>(
  url: string,
  settings: string,
  run: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({
    ...connectionOptionsOf(url),
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
