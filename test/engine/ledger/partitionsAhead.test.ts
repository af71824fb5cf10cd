/**
 * Tests that the partitions of the ledger are made days in advance, so that a lock on the ledger delays no
 * flush.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { firstIdAt } from '../../../src/domain/entryId.js';
import { ensurePartition, indexedDays } from '../../../src/engine/ledger/ledger.store.js';
import { PartitionMaker } from '../../../src/engine/ledger/partitions.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import { Cleanup } from '../../support/cleanup.js';
import { startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const DAY_MS = 86_400_000;
/**
 * Start of the day on which the spins of the test are committed. Shortly before midnight this is the next
 * day.
 */
const TODAY = Math.floor((Date.now() + 60_000) / DAY_MS) * DAY_MS;
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const tableOf = (ms: number): string => `ledger_${dayOf(ms).replaceAll('-', '')}`;

const cleanup = new Cleanup();
let stores: TestStores;
let sql: postgres.Sql;

beforeAll(async () => {
  stores = await freshStores();
  cleanup.add(() => stores.drop());
  sql = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  cleanup.add(() => sql.end());
});
afterAll(() => cleanup.run());

const partitions = async (): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'ledger'::regclass ORDER BY 1`;
  return rows.map(({ name }) => name);
};

test("commits spins to today's partition while a lock like that of ANALYZE or DETACH CONCURRENTLY is on the ledger", async () => {
  const own = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  for (const day of [TODAY - DAY_MS, TODAY])
    await ensurePartition(own, dayOf(day), { from: firstIdAt(day), to: firstIdAt(day + DAY_MS) });
  await own.end();
  const locked = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  onTestFinished(() => locked.end({ timeout: 0 }));
  await locked`BEGIN`;
  await locked`LOCK TABLE ONLY ledger IN SHARE UPDATE EXCLUSIVE MODE`;

  const service = await startLogged(stores, { ACK: 'ledger' });
  cleanup.add(() => service.running.stop());
  const partner = await service.newPartner({ openingBalanceUsd: 10 });
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const spun = await service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  expect(spun.status, spun.text).toBe(200);
  await until(
    async () =>
      service.lines.some(({ msg }) => msg === 'ledger partition for tomorrow is missing, will retry'),
    'the log says what is missing',
  );
  expect(await service.metric('spindle_ledger_partition_days_ahead')).toBe(0);
  expect(await partitions()).not.toContain(tableOf(TODAY + DAY_MS));

  await locked`ROLLBACK`;
  await until(
    async () => (await service.metric('spindle_ledger_partition_days_ahead')) >= 3,
    'days are ahead',
  );
  const made = await partitions();
  for (const ahead of [1, 2, 3]) expect(made).toContain(tableOf(TODAY + ahead * DAY_MS));
});

test("a future day's partition without the feed's index gets one", async () => {
  const own = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  cleanup.add(() => own.end());
  const ahead = [1, 2, 3].map((days) => TODAY + days * DAY_MS);
  expect(await indexedDays(own, ahead.map(dayOf))).toHaveLength(3);
  for (const day of ahead) await sql`DROP INDEX ${sql(`${tableOf(day)}_feed`)}`;
  await until(
    async () => (await indexedDays(own, ahead.map(dayOf))).length === 3,
    'the days are indexed again',
  );
});

test("a flush that needs today's missing partition creates it", async () => {
  // The worker of the previous test is still running. Its partition maker would make the missing partition
  // within ten seconds.
  const maker = vi.spyOn(PartitionMaker.prototype as unknown as { turn(): Promise<void> }, 'turn');
  maker.mockResolvedValue();
  onTestFinished(() => maker.mockRestore());
  const service = await startLogged(stores, { ACK: 'ledger', ROLES: 'http' });
  cleanup.add(() => service.running.stop());
  const partner = await service.newPartner({ slug: 'missing', openingBalanceUsd: 10 });
  if ((await partitions()).includes(tableOf(TODAY))) {
    await sql.unsafe(`ALTER TABLE ledger DETACH PARTITION ${tableOf(TODAY)}`);
    await sql.unsafe(`ALTER TABLE ${tableOf(TODAY)} RENAME TO detached`);
  }
  let gameId: number | undefined;
  await until(async () => {
    gameId ??= await service.newGame(partner.key, parSheet('classic-3-reel')).catch(() => undefined);
    if (gameId === undefined) return false;
    return (await service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 })).status === 200;
  }, 'a spin is booked');
  expect(await partitions()).toContain(tableOf(TODAY));
});
