/** The connections of a command to Postgres, which ends with them. */
import { connectPostgres } from '../postgres/connect.js';
import type { Sql } from '../postgres/connection.js';

/**
 * @param name as `pg_stat_activity` shows it, after `spindle-`
 * @param max connections at the most
 * @throws Error with one line where the address can't be used
 */
export const openPostgres = (url: string, name: string, max: number): Sql =>
  connectPostgres(url, { max, name: `spindle-${name}`, onError: () => {} });
