import type { Sql } from './connection.js';

/** Returns the time of the Postgres server, in milliseconds since the Unix epoch. */
export async function databaseTimeMs(sql: Sql): Promise<number> {
  const [row] = await sql<{ ms: number }[]>`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
  return row!.ms;
}
