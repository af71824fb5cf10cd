import type { Sql } from './connection.js';

export async function databaseTimeMs(sql: Sql): Promise<number> {
  const [row] = await sql<{ ms: number }[]>`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
  return row!.ms;
}
