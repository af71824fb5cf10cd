/**
 * Runs the service on a database with settings that contradict its assumptions, directly and through a
 * pooler.
 */
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { booksHold } from '../support/books.js';
import type { Client } from '../support/client.js';
import { auditFindings } from '../support/communal.js';
import { everyRead } from '../support/everyRead.js';
import { HOSTILE_SETTINGS } from '../support/hostileSettings.js';
import { pgbouncerMissing, startPgBouncer } from '../support/pgbouncer.js';
import { rawRedis } from '../support/redis.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

/** Timeouts that a client can't change through a pooler. */
const HOSTILE_TIMEOUTS = [
  `statement_timeout = '20ms'`,
  `idle_in_transaction_session_timeout = '20ms'`,
  `idle_session_timeout = '1s'`,
];

const ADJUSTMENTS = 125;
const TODAY = new Date().toISOString().slice(0, 10);

/**
 * Creates a database with these settings for every new session, and a session for the test to which they do
 * not apply.
 */
async function hostileStores(
  settings: readonly string[],
): Promise<TestStores & { sql: postgres.Sql<{ bigint: bigint }> }> {
  const stores = await freshStores({ hasSchema: false });
  const name = new URL(stores.databaseUrl).pathname.slice(1);
  const sql = postgres(stores.databaseUrl, {
    max: 1,
    types: { bigint: postgres.BigInt },
    onnotice: () => {},
  });
  onTestFinished(async () => {
    await sql.end();
    await stores.drop();
  });
  // This session starts before the hostile settings apply.
  await sql`SELECT 1`;
  for (const setting of settings) await sql.unsafe(`ALTER DATABASE ${name} SET ${setting}`);
  return { ...stores, sql };
}

async function expectWholeService(
  service: Client,
  stores: TestStores & { sql: postgres.Sql<{ bigint: bigint }> },
) {
  const partner = await service.newPartner({
    openingBalanceUsd: 1000,
    apiRateLimit: 100_000,
    spinRateLimit: 100_000,
  });
  const { partnerId, key } = partner;
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const spin = (i: number) =>
    service.spin<{ spinId: string }>(key, { gameId, playerId: 'p', wagerUsd: 0.25, requestId: `s-${i}` });
  await until(async () => (await spin(0)).status === 200, 'the game is dealt from');
  const spun = await Promise.all(Array.from({ length: 50 }, (_, i) => spin(i)));
  expect(spun.filter(({ status }) => status !== 200)).toEqual([]);
  const adjusted = await Promise.all(
    Array.from({ length: ADJUSTMENTS }, (_, i) =>
      service.operator('POST', `/partners/${partnerId}/players/p${i % 5}/adjustments`, {
        amountUsd: 1,
        reason: 'goodwill',
        requestId: `a-${i}`,
      }),
    ),
  );
  expect(adjusted.filter(({ status }) => status !== 200).map(({ text }) => text)).toEqual([]);
  const report = await service.operator('POST', `/partners/${partnerId}/settlements/${TODAY}`);
  expect(report.status, report.text).toBe(201);

  const redis = rawRedis(stores.redisUrl);
  onTestFinished(() => redis.disconnect());
  await redis.flushdb();
  await until(async () => (await spin(99)).status === 200, 'the cells are rebuilt');
  expect((await spin(7)).text).toBe(spun[7]!.text);

  const answers = await everyRead(service, { partner, gameId, playerId: 'p', date: TODAY });
  expect(answers.filter(({ status }) => status >= 500).map(({ path, text }) => `${path} ${text}`)).toEqual(
    [],
  );
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(30);
  // Matches dates in German format and times of another time zone.
  const foreign = /"\d{2}\.\d{2}\.\d{4}|\+05:?30/;
  expect(answers.filter(({ text }) => foreign.test(text)).map(({ path }) => path)).toEqual([]);
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
  await booksHold(stores.sql);
}

test('serves every request on a database with hostile settings', async () => {
  const stores = await hostileStores([...HOSTILE_SETTINGS, ...HOSTILE_TIMEOUTS]);
  const service = await startService(stores, { CELLS: '2' });
  onTestFinished(() => service.stop());
  await expectWholeService(service, stores);
});

test('serves every request through a pooler on a database with hostile settings', async ({ skip }) => {
  const missing = pgbouncerMissing();
  if (missing !== undefined) return skip(missing);
  const stores = await hostileStores(HOSTILE_SETTINGS);
  const pooler = await startPgBouncer(stores.databaseUrl, 8);
  onTestFinished(() => pooler.stop());
  const settings = { CELLS: '2', DATABASE_DIRECT_URL: stores.databaseUrl, ALLOW_VOLATILE_POSTGRES: '1' };
  const service = await startService({ ...stores, databaseUrl: pooler.url }, settings);
  onTestFinished(() => service.stop());
  await expectWholeService(service, stores);
});
