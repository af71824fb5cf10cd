/** Runs everything that the service does in Postgres through a PgBouncer in transaction mode. */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { booksHold } from '../support/books.js';
import { Cleanup } from '../support/cleanup.js';
import type { Client, TestPartner } from '../support/client.js';
import { auditFindings } from '../support/communal.js';
import { type PgBouncer, pgbouncerMissing, startPgBouncer } from '../support/pgbouncer.js';
import { rawRedis } from '../support/redis.js';
import { startLogged, startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

const WARNING =
  'Postgres has no timeout for hanging statements: set statement_timeout and idle_in_transaction_session_timeout on the role';
/** Pool size, smaller than the number of connections of one worker. */
const POOL_SIZE = 5;
const cleanup = new Cleanup();
const missing = pgbouncerMissing();
let stores: TestStores;
let pooler: PgBouncer;

beforeAll(async () => {
  if (missing !== undefined) return;
  stores = await freshStores({ hasSchema: false });
  cleanup.add(() => stores.drop());
  pooler = await startPgBouncer(stores.databaseUrl, POOL_SIZE);
  cleanup.add(() => pooler.stop());
});
afterAll(() => cleanup.run());

/** Sells a ticket. The answer waits for the commit to the ledger, whatever ACK says. */
async function sellTicket(client: Client, { key, partnerId }: TestPartner): Promise<void> {
  const prizes = [{ prizeName: 'Car', prizeTier: 6, valueUsd: 50, count: 1 }];
  const gameId = await client.api.newRaffle(partnerId, 'raffle', { ticketPriceUsd: 1, poolSize: 1, prizes });
  const sold = await client.spin(key, { gameId, playerId: 'p', wagerUsd: 1, requestId: 'ticket' });
  expect(sold.status, sold.text).toBe(200);
}

test('migrations, spins, tickets, flushes, reports, a rebuild and the audit work in PgBouncer transaction mode', async ({
  skip,
}) => {
  if (missing !== undefined) return skip(missing);
  const pooled = { redisUrl: stores.redisUrl, databaseUrl: pooler.url };
  const settings = { ACK: 'ledger', CELLS: '2', DATABASE_DIRECT_URL: stores.databaseUrl };
  // Two processes start at the same time on an empty database.
  const [worker, front] = await Promise.all([
    startLogged(pooled, { ...settings, LOG_LEVEL: 'warn' }),
    startService(pooled, { ...settings, ROLES: 'http' }),
  ]);
  cleanup.add(() => worker.running.stop());
  cleanup.add(() => front.stop());
  expect(worker.lines.map(({ msg }) => msg)).toContain(WARNING);
  const partners = await Promise.all(
    [1, 2].map(async () => {
      const partner = await worker.newPartner({ openingBalanceUsd: 1000 });
      return { ...partner, gameId: await worker.newGame(partner.key, parSheet('classic-3-reel')) };
    }),
  );
  const spin = ({ key, gameId }: (typeof partners)[0], requestId: string) =>
    front.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25, requestId });
  const [partner] = partners;
  await until(async () => (await spin(partner!, 'first')).status === 200, 'the front end knows the game');
  const spun = await Promise.all(
    partners.flatMap((each) => Array.from({ length: 100 }, (_, i) => spin(each, `spin-${i}`))),
  );
  expect(spun.filter(({ status }) => status !== 200)).toEqual([]);
  await sellTicket(worker, partner!);

  const today = new Date().toISOString().slice(0, 10);
  const path = `/partners/${partner!.partnerId}/settlements/${today}`;
  const report = await worker.operator('POST', path);
  expect(report.status, report.text).toBe(201);

  const redis = rawRedis(stores.redisUrl);
  cleanup.add(() => redis.disconnect());
  await redis.del('{c0}:cell', '{c1}:cell');
  await until(async () => (await spin(partner!, 'rebuilt')).status === 200, 'the cells are rebuilt');
  expect((await spin(partner!, 'spin-7')).text).toBe(spun[7]!.text);

  // A change made on one front end reaches the other front end.
  const listed = await worker.operator<{ keys: { keyId: number }[] }>(
    'GET',
    `/partners/${partner!.partnerId}/keys`,
  );
  const [issued] = listed.body.keys;
  const revoked = await worker.operator('DELETE', `/partners/${partner!.partnerId}/keys/${issued!.keyId}`);
  expect(revoked.status, revoked.text).toBeLessThan(300);
  await until(
    async () => (await spin(partner!, 'revoked')).status === 401,
    'the front end knows that the key is revoked',
  );

  await until(async () => (await auditFindings(pooled)).length === 0, 'the audit is clean');
  const sql = postgres(stores.databaseUrl, {
    max: 1,
    types: { bigint: postgres.BigInt },
    onnotice: () => {},
  });
  cleanup.add(() => sql.end());
  await booksHold(sql);
  const of = await sql<{ count: bigint }[]>`SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
  expect(Number(of[0]!.count)).toBeLessThanOrEqual(POOL_SIZE);
});
