/**
 * Tests that errors which the statement did not cause are reported as an unavailable Postgres, so that the
 * caller may retry.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isRedisAway } from '../../src/engine/redis/scriptErrors.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Sql } from '../../src/postgres/connection.js';
import { isPostgresAway } from '../../src/postgres/postgresErrors.js';
import { freshStores } from '../setup/freshStores.js';
import { Cleanup } from '../support/cleanup.js';
import { until } from '../support/wait.js';

const cleanup = new Cleanup();
let databaseUrl: string;
let sql: Sql;
let other: Sql;

beforeAll(async () => {
  const stores = await freshStores();
  cleanup.add(() => stores.drop());
  databaseUrl = stores.databaseUrl;
  sql = connect();
  other = connect();
  await sql`CREATE TABLE pairs (id int PRIMARY KEY, value int NOT NULL)`;
  await sql`INSERT INTO pairs VALUES (1, 0), (2, 0)`;
});
afterAll(() => cleanup.run());

function connect(url = databaseUrl): Sql {
  const opened = connectPostgres(url, { max: 2, name: `away ${randomUUID()}`, onError: () => {} });
  cleanup.add(() => opened.end());
  return opened;
}

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

test('reports Postgres as unavailable if a transaction ends because its session was idle for too long', async () => {
  const failure = await failureOf(
    sql.begin(async (tx) => {
      const [row] = await tx<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
      await until(async () => {
        const [found] = await other<{ n: number }[]>`
          SELECT count(*)::int AS n FROM pg_stat_activity WHERE pid = ${row!.pid}`;
        return found!.n === 0;
      }, 'the session is ended');
      await tx`UPDATE pairs SET value = 1 WHERE id = 1`;
    }),
  );
  expect(failure).toBeInstanceOf(Error);
  expect(isPostgresAway(failure)).toBe(true);
});

test('reports Postgres as unavailable if a COPY hangs, after the same timeout as for any other statement', async () => {
  let pid = 0;
  const failure = await failureOf(
    sql.begin(async (tx) => {
      const [row] = await tx<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
      pid = row!.pid;
      process.kill(pid, 'SIGSTOP');
      for await (const _ of tx.read('COPY (SELECT 1) TO STDOUT (FORMAT binary)'));
    }),
  );
  process.kill(pid, 'SIGCONT');
  expect(isPostgresAway(failure), String(failure)).toBe(true);
  expect(await sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
});

test('reports Postgres as unavailable if a deadlock aborts a transaction', async () => {
  let arrived = 0;
  let meet = (): void => {};
  const met = new Promise<void>((resolve) => {
    meet = resolve;
  });
  const cross = (opened: Sql, first: number, second: number): Promise<void> =>
    opened.begin(async (tx) => {
      await tx`UPDATE pairs SET value = value + 1 WHERE id = ${first}`;
      if (++arrived === 2) meet();
      await met;
      await tx`UPDATE pairs SET value = value + 1 WHERE id = ${second}`;
    });
  const failures = await Promise.all([failureOf(cross(sql, 1, 2)), failureOf(cross(other, 2, 1))]);
  const undone = failures.filter((failure) => failure !== undefined);
  expect(undone).toHaveLength(1);
  expect(isPostgresAway(undone[0])).toBe(true);
});

test.each([
  ['EAI_AGAIN', 'getaddrinfo EAI_AGAIN store.example'],
  ['ENOTFOUND', 'getaddrinfo ENOTFOUND store.example'],
  ['ENETUNREACH', 'connect ENETUNREACH 192.0.2.1:5432'],
  ['ENETDOWN', 'read ENETDOWN'],
  ['EHOSTDOWN', 'connect EHOSTDOWN 192.0.2.1:5432'],
  ['EHOSTUNREACH', 'read EHOSTUNREACH'],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'tlsv1 alert unknown ca'],
  ['CERT_HAS_EXPIRED', 'certificate has expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', "Hostname/IP does not match certificate's altnames"],
])('%s counts as an unavailable Postgres and an unavailable Redis', (code, message) => {
  const error = Object.assign(new Error(message), { code });
  expect({ postgres: isPostgresAway(error), redis: isRedisAway(error) }).toEqual({
    postgres: true,
    redis: true,
  });
});

test.each([
  ['TLS that the server lacks', (url: URL) => url.searchParams.set('sslmode', 'require')],
  ['a password that was changed', (url: URL) => Object.assign(url, { password: 'another' })],
  ['a database that is gone', (url: URL) => Object.assign(url, { pathname: '/gone' })],
])('a connection that fails because of %s counts as an unavailable Postgres', async (_, change) => {
  const url = new URL(databaseUrl);
  change(url);
  const failure = await failureOf(connect(url.href)`SELECT 1`);
  expect(isPostgresAway(failure), String(failure)).toBe(true);
});
