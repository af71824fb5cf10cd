/**
 * Tests that ledger queries of one partner delay neither flushes nor the spins and look-ups of another
 * partner.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../../src/api/api.store.js';
import { firstIdAt } from '../../../src/domain/entryId.js';
import { Confirmations } from '../../../src/engine/cells/confirmations.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { world } from '../../setup/world.js';
import type { TestPartner } from '../../support/client.js';
import { proxy } from '../../support/proxy.js';
import { rawRedis } from '../../support/redis.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const WAGER = 0.25;
/** A flush takes some tens of milliseconds. A statement that waits for the lock is cancelled after 8 s. */
const SOON_MS = 7000;

const { stores, sql } = world();
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  service = await startService(stores);
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});

afterAll(async () => {
  await service?.stop();
});

const spin = () => service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: WAGER });

test('requests that use all connections of their pool to Postgres delay no flush', async () => {
  const waiting: Promise<unknown>[] = [];
  await sql.begin(async (tx) => {
    await tx`LOCK TABLE webhooks IN ACCESS EXCLUSIVE MODE`;
    for (let i = 0; i < 20; i++) waiting.push(service.partner('GET', '/webhooks', partner.key));
    await until(
      async () =>
        (
          await sql`
            SELECT 1 FROM pg_stat_activity WHERE wait_event = 'relation' AND datname = current_database()`
        ).length >= 6,
      'requests wait for the lock',
    );
    const { body } = await spin();
    expect(body).toMatchObject({ spinId: expect.any(String) });
    const booked = async () => (await sql`SELECT 1 FROM ledger WHERE kind = 1`).length === 1;
    await until(booked, 'the spin is in the ledger', SOON_MS);
  });
  await Promise.all(waiting);
});

test('look-ups of uncommitted spins wait for an announcement with few queries and delay no other request', async () => {
  const cable = await proxy(stores.databaseUrl);
  const url = { ...stores, databaseUrl: cable.url };
  const front = await startService(url, { ROLES: 'http', SPIN_DEADLINE_MS: '3000' });
  const other = await service.newPartner();
  await front.partner('GET', '/par-sheets', other.key);
  // No worker is running, so no entry is committed.
  await service.stop();
  const { status, body } = await front.spin(partner.key, { gameId, playerId: 'p', wagerUsd: WAGER });
  expect(status).toBe(200);
  // Announcements of commits by another database on the same Redis must be ignored.
  const redis = rawRedis(stores.redisUrl);
  for (let cell = 0; cell < 4; cell++)
    await redis.publish('spindle:booked', `${cell} another:1 ${2n ** 60n}`);
  // Messages that do not come from the service must be ignored as well.
  for (const channel of ['spindle:booked', 'spindle:changes']) await redis.publish(channel, 'not ours');
  redis.disconnect();
  let questions = 0;
  cable.beforeRequest = (chunk) => {
    if (chunk.includes('cursor_id AS cursor FROM cells')) questions++;
  };
  let answered = 0;
  const looks = Array.from({ length: 200 }, async () => {
    const answer = await front.partner('GET', `/spins/${body.spinId as string}`, partner.key);
    answered++;
    return answer.body.errorCode;
  });
  try {
    expect((await front.partner('GET', '/par-sheets', other.key)).status).toBe(200);
    expect(answered).toBe(0);
    expect(new Set(await Promise.all(looks))).toEqual(new Set(['KS-5002']));
    expect(questions).toBeGreaterThan(0);
    expect(questions).toBeLessThan(60);
  } finally {
    await Promise.allSettled(looks);
    await front.stop();
    await cable.close();
    service = await startService(stores);
  }
});

test('at most 1,000 readers wait for the commit of a cell, and the next reader is refused at once', async () => {
  const pool = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  const store = openStore(pool);
  const confirmations = new Confirmations({
    datasetId: 'of this test',
    read: () => store.cells.cursors(),
    findEntry: (entryId) => store.ledgerEntries.find(entryId),
    serverOf: () => undefined,
    onError: () => {},
    onAwaited: () => {},
    onConfirmed: () => {},
  });
  const never = firstIdAt(Date.now() + 3_600_000);
  const waiting = Array.from({ length: 1000 }, () => confirmations.cameTo(0, never, 500));
  const refused = confirmations.cameTo(0, never, 60_000).then((hasCome) => ({ hasCome }));
  expect(await Promise.race([refused, ...waiting])).toEqual({ hasCome: false });
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([false]));
  await pool.end();
});
