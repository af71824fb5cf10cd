/**
 * Tests a Redis that restarts with an older copy of the same epoch after the front ends have forgotten their
 * responses. No outcome that was revealed may be dealt again.
 */
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Client, TestPartner } from '../../support/client.js';
import { openNodes } from '../../support/redis.js';
import { environment, spawnService, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const SPINS = 30;
const ends: (() => Promise<unknown>)[] = [];
let stores: OwnStores;
let sql: postgres.Sql<{ bigint: bigint }>;
let partner: TestPartner;
let gameId: number;

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A worker loads blocks, commits ten spins and is stopped, so that later spins exist only in Redis. */
beforeEach(async () => {
  stores = await ownStores();
  ends.push(() => stores.drop());
  sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  ends.push(() => sql.end());
  const both = await startService(stores, { CELLS: '1' });
  partner = await both.newPartner({ openingBalanceUsd: 50 });
  gameId = await both.newGame(partner.key, parSheet('classic-3-reel'));
  await play(both, 'before', 10);
  await until(async () => (await sql`SELECT 1 FROM ledger WHERE kind = 1`).length === 10, 'all is booked');
  await both.stop();
  await stores.copyRedis();
});

async function play(client: Client, name: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const body = { gameId, playerId: 'p', wagerUsd: 0.25, requestId: `${name}-${i}` };
    const answer = await client.spin(partner.key, body);
    expect(answer.status, answer.text).toBe(200);
  }
}

/** Starts a front end without a worker. Its cell can be dealt from, but no spin is committed. */
async function frontEnd(): Promise<Awaited<ReturnType<typeof startService>>> {
  const front = await startService(stores, { ROLES: 'http', CELLS: '1' });
  ends.push(() => front.stop());
  return front;
}

async function putOlderCopyBack(): Promise<void> {
  await stores.redis.stop();
  await stores.restoreRedis();
  await stores.redis.start();
}

const noted = async (): Promise<bigint> =>
  (await sql<{ entry_id: bigint }[]>`SELECT entry_id FROM answered_entries`)[0]?.entry_id ?? 0n;
const firstIndexOf = async (requestId: string): Promise<bigint> =>
  (await sql<{ at: bigint }[]>`SELECT outcome_index AS at FROM ledger WHERE request_id = ${requestId}`)[0]!
    .at;

/**
 * Checks that the indices of new outcomes are higher than every index that was leased when the spins were
 * answered.
 */
async function expectDealtAbove(client: Client, leased: bigint): Promise<void> {
  await until(async () => (await client.request('GET', '/statusz')).status === 200, 'the service is ready');
  // The test waits for the first spin, because the blocks of a rebuilt cell are made anew.
  const spin = { gameId, playerId: 'p', wagerUsd: 0.25, requestId: 'after-0' };
  await until(async () => (await client.spin(partner.key, spin)).status === 200, 'a spin is dealt again');
  const isBooked = async (): Promise<boolean> =>
    (await sql`SELECT 1 FROM ledger WHERE request_id = 'after-0'`).length === 1;
  await until(isBooked, 'the new spin is booked');
  expect(await firstIndexOf('after-0')).toBeGreaterThanOrEqual(leased);
  const recoveries = await sql`SELECT reason FROM recoveries`;
  expect([...recoveries]).toEqual([{ reason: expect.stringContaining('lacks answered entries') }]);
}

const leasedNow = async (): Promise<bigint> =>
  (await sql<{ end: bigint }[]>`SELECT max(to_index) AS end FROM blocks`)[0]!.end;

test.each(['stopped', 'killed'] as const)(
  'the worker rebuilds a cell with an older copy of Redis after its front ends were %s',
  async (how) => {
    const front = await spawnService(environment(stores, { ROLES: 'http', CELLS: '1' }));
    ends.push(() => front.end('SIGKILL'));
    await play(front.client, 'shown', SPINS);
    const leased = await leasedNow();
    if (how === 'stopped') {
      await front.end('SIGTERM');
    } else {
      // Front ends record their answered watermark about once a second. If a front end is killed earlier,
      // only the watermark of that second is lost.
      const newest = await newestEntry();
      await until(async () => (await noted()) >= newest, 'what was answered is noted');
      await front.end('SIGKILL');
    }
    await putOlderCopyBack();
    const service = await startService(stores, { CELLS: '1' });
    ends.push(() => service.stop());
    await expectDealtAbove(service, leased);
  },
);

test('a running front end causes the rebuild of a cell with an older copy, and its lost spins are reported with their ids', async () => {
  const front = await frontEnd();
  await play(front, 'shown', SPINS);
  const leased = await leasedNow();
  await until(async () => (await noted()) > 0n, 'what was answered is noted');
  await putOlderCopyBack();
  // The recorded watermarks are deleted, as if the spins had been answered after the last one was recorded.
  await sql`DELETE FROM answered_entries`;
  const worker = await startService(stores, { ROLES: 'worker', CELLS: '1' });
  ends.push(() => worker.stop());
  await until(async () => {
    const answer = await front.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    return answer.status === 200;
  }, 'spins are dealt again');
  await expectDealtAbove(front, leased);
  const lost = async (): Promise<number> => (await sql`SELECT 1 FROM lost_spins`).length;
  await until(async () => (await lost()) === SPINS, 'the lost spins are written down');
});

async function newestEntry(): Promise<bigint> {
  const open = await openNodes(stores.redisUrl);
  try {
    return await open.nodes.cell(0).newestInOutbox();
  } finally {
    open.close();
  }
}
