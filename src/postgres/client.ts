/** The connections to Postgres: made here only. */
import { runner } from 'node-pg-migrate';
import postgres from 'postgres';

/** All 8-byte integers are read as BigInt; callers turn money into safe integers with {@link safe}. */
export type Sql = postgres.Sql<{ bigint: bigint }>;
export type Transaction = postgres.TransactionSql<{ bigint: bigint }>;

/** The oldest server that the schema is tested for. */
export const POSTGRES_MAJOR_MIN = 15;

/** SQLSTATE of a unique constraint that refused a row. */
const UNIQUE_VIOLATION = '23505';

export function connectPostgres(url: string, options: { max: number; name: string }): Sql {
  return postgres(url, {
    max: options.max,
    connect_timeout: 3,
    idle_timeout: 0,
    backoff: (attempt) => Math.min(0.05 * attempt, 0.5),
    connection: { application_name: options.name },
    types: { bigint: postgres.BigInt },
    onnotice: () => {},
  });
}

/** Major version of the server, such as 15. */
export async function postgresMajor(sql: Sql): Promise<number> {
  const [row] = await sql<{ server_version_num: string }[]>`SHOW server_version_num`;
  return Math.floor(Number(row?.server_version_num ?? 0) / 10_000);
}

/** Brings the schema up to date; of several processes that start at once, one does it and the others wait. */
export async function migrate(
  url: string,
  migrationsDir: string,
  log: (line: string) => void,
): Promise<void> {
  await runner({
    databaseUrl: url,
    dir: migrationsDir,
    direction: 'up',
    migrationsTable: 'migrations',
    checkOrder: true,
    advisoryLockMode: 'wait',
    logger: { debug: () => {}, info: log, warn: log, error: log },
  });
}

export function isUniqueViolation(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === UNIQUE_VIOLATION;
}

/** A database integer as a JS number. @throws RangeError where a double can't hold it exactly. */
export function safe(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is not a safe integer`);
  return number;
}
