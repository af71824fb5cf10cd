/** Tests a service with more games than a worker has connections to Postgres. */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

/**
 * Number of partners. It exceeds the number of Postgres connections that a worker and its front end have
 * together.
 */
const PARTNERS = 24;
/** Maximum number of Postgres connections that a worker uses to replenish games. */
const CONNECTIONS_MAX = 6;
const SETTINGS = { CELLS: '2' };

const { stores } = world();
let sql: postgres.Sql;
const ends: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  sql = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  ends.push(
    () => stores.drop(),
    () => sql.end(),
  );
});
afterAll(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

test('a restarted service deals from all games and renews its leases while no game can be replenished', async () => {
  const before = await startService(stores, SETTINGS);
  ends.push(() => before.stop());
  const games: { key: string; gameId: number }[] = [];
  for (let i = 0; i < PARTNERS; i++) {
    const { key } = await before.newPartner();
    games.push({ key, gameId: await before.newGame(key, parSheet('classic-3-reel')) });
  }
  const spin = (service: typeof before, { key, gameId }: (typeof games)[number]) =>
    service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  for (const game of games) expect((await spin(before, game)).status).toBe(200);
  await before.stop();

  // The replenishment of every game waits for this table lock.
  const locking = await sql.reserve();
  await locking`BEGIN`;
  await locking`LOCK TABLE block_reserves IN ACCESS EXCLUSIVE MODE`;
  const waiting = async (): Promise<number> => {
    const [row] = await sql<[{ n: number }]>`
      SELECT count(*)::int AS n FROM pg_locks WHERE relation = 'block_reserves'::regclass AND NOT granted`;
    return row.n;
  };
  const service = await startService(stores, SETTINGS);
  ends.push(() => service.stop());
  await until(async () => (await waiting()) > 1, 'games wait to be replenished');
  for (const game of games) {
    const answer = await spin(service, game);
    expect(answer.status, answer.text).toBe(200);
  }
  expect((await service.request('GET', '/statusz')).status).toBe(200);
  expect(await waiting()).toBeLessThanOrEqual(CONNECTIONS_MAX);
  await locking`ROLLBACK`;
  locking.release();
  await until(
    async () => (await sql`SELECT 1 FROM block_reserves WHERE NOT is_low`).length === PARTNERS,
    'all games are replenished',
  );
});
