/**
 * Start with --migrate: updates the database schema and ends the process. It is meant for a job that runs
 * before the service processes.
 */

import { addressOf, lineOf } from '../../platform/secretsInLogs.js';
import { migrate } from '../../postgres/migrate.js';
import type { Config } from '../config.js';
import { SetupError } from '../embedded/index.js';

/** @throws SetupError with one line if no address is configured or Postgres can't be reached */
export async function migrateOnly(config: Config, progress: (line: string) => void): Promise<void> {
  const url = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
  if (url === undefined)
    throw new SetupError('--migrate needs DATABASE_URL. Set it to the database to migrate.');
  try {
    await migrate(url, config.migrationsDir, () => {});
  } catch (error) {
    throw new SetupError(`The schema of Postgres at ${addressOf(url)} was not changed: ${lineOf(error)}`);
  }
  progress('The schema is up to date');
}
