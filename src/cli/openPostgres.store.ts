/** Opens connections to Postgres for a command. The command must close them when it ends. */
import { connectPostgres } from '../postgres/connect.js';
import type { Sql } from '../postgres/connection.js';

/**
 * Opens a connection pool.
 * @param name name in `pg_stat_activity`, prefixed with `spindle-`
 * @param max maximum number of connections
 * @throws Error with one line if the address is unusable
 */
export const openPostgres = (url: string, name: string, max: number): Sql =>
  connectPostgres(url, { max, name: `spindle-${name}`, onError: () => {} });
