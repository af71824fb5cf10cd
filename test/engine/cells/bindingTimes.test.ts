import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../../src/api/api.store.js';
import { RequestFilter } from '../../../src/domain/requestFilter.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../../../src/domain/requestKey.js';
import { RequestIds } from '../../../src/engine/requestIds/requestIds.js';
import { moveBinding } from '../../../src/engine/requestIds/requestRunReads.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { world } from '../../setup/world.js';
import type { Client, TestPartner } from '../../support/client.js';
import { auditFindings } from '../../support/communal.js';
import { untilReleased } from '../../support/requestSegments.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

/** Time in seconds for which request ids stay bound. It is 30 days, so no binding ends during a test. */
const LONG = '2592000';

const { stores, sql, redis } = world();
let service: ServerProcess | undefined;
let client: Client;
let partner: TestPartner;
let gameId: number;
let own: Sql;

beforeAll(async () => {
  own = connectPostgres(stores.databaseUrl, { max: 2, name: 'binding-test', onError: () => {} });
  await start(LONG);
  partner = await client.newPartner({ openingBalanceUsd: 100 });
  gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
});

afterEach(async () => {
  await service?.end();
  service = undefined;
});

afterAll(async () => {
  await own.end();
});

async function start(seconds: string, more: Record<string, string> = {}): Promise<void> {
  await service?.end();
  const settings = { CELLS: '1', REQUEST_ID_WINDOW_S: '1', IDEMPOTENCY_TTL_S: seconds, ...more };
  service = await spawnService(environment(stores, settings));
  client = service.client;
}

async function spin(requestId: string, game = gameId) {
  const body = { gameId: game, playerId: 'p1', wagerUsd: 0.25, requestId };
  const { status, text, headers } = await client.spin<{ spinId: string }>(partner.key, body);
  expect([status, text]).toEqual([200, text]);
  return { text, isReplay: headers.get('idempotent-replayed') === 'true' };
}

const entriesOf = async (requestId: string): Promise<bigint[]> => {
  const rows = await sql<{ entry_id: bigint }[]>`
    SELECT entry_id FROM ledger WHERE request_id = ${requestId} ORDER BY entry_id`;
  return rows.map(({ entry_id }) => entry_id);
};

async function untilFresh(requestId: string): Promise<void> {
  await until(async () => !(await spin(requestId)).isReplay, `${requestId} binds no more`);
}

/**
 * Checks that the requestId was dealt again, and each time only after it had been bound for this many
 * milliseconds.
 */
async function boundFor(requestId: string, ms: number): Promise<void> {
  await until(async () => (await entriesOf(requestId)).length > 1, 'both are booked');
  const entries = await entriesOf(requestId);
  for (const [i, entry] of entries.slice(1).entries())
    expect(Number((entry - entries[i]!) >> 22n)).toBeGreaterThanOrEqual(ms);
}

function keyOf(requestId: string): Buffer {
  const key = Buffer.alloc(REQUEST_KEY_BYTES);
  writeRequestKey(key, 0, partner.partnerId, requestId);
  return key;
}

const idsInRuns = (filterBytesMax = 1e9): RequestIds => {
  const store = openStore(own);
  return new RequestIds({
    runs: store,
    store,
    filterBytesMax,
    newestVersion: () => '',
    everyMs: 1000,
    onError: () => {},
  });
};

test('a shorter IDEMPOTENCY_TTL_S applies only to request ids bound later, and GET /version returns the time in force', async () => {
  await start(LONG);
  const bindsSeconds = async (): Promise<unknown> =>
    (await client.partner('GET', '/version', partner.key)).body.requestIdBindsSeconds;
  expect(await bindsSeconds()).toBe(Number(LONG));
  const long = await spin('long');
  await untilReleased(redis, 0);
  await start('2');
  expect(await bindsSeconds()).toBe(2);
  await spin('short');
  await untilFresh('short');
  expect(await spin('long')).toEqual({ text: long.text, isReplay: true });
  // A longer binding time also applies to ids that are still bound. Ids whose binding has ended stay free.
  await start(LONG);
  expect(await bindsSeconds()).toBe(Number(LONG));
  await spin('kept');
  await untilReleased(redis, 0);
  for (const requestId of ['long', 'kept']) expect((await spin(requestId)).isReplay).toBe(true);
  await boundFor('short', 2000);
  await until(async () => (await entriesOf('kept')).length === 1, 'all is booked');
  await service!.end();
  expect(await auditFindings(stores)).toEqual([]);
});

test('runs of unbound request ids are dropped, also from front ends, but tickets and adjustments stay bound', async () => {
  await start('3');
  // A run of request ids that begins before the binding time was shortened is kept as long as its oldest ids
  // may be bound.
  await spin('before');
  await untilReleased(redis, 0);
  const raffle = await client.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partner.partnerId}/raffles`,
    {
      displayName: 'A raffle',
      configName: 'BINDING',
      ticketPriceUsd: 0.25,
      poolSize: 20,
      prizes: [{ prizeName: 'Car', prizeTier: 1, valueUsd: 5, count: 1 }],
    },
  );
  const raffleId = raffle.body.gameConfigId;
  const isActive = async () =>
    (await sql`SELECT 1 FROM games WHERE game_id = ${raffleId} AND status = 'ACTIVE'`).length === 1;
  await until(isActive, 'the raffle is sealed');
  const adjust = async () =>
    (
      await client.operator('POST', `/partners/${partner.partnerId}/players/p1/adjustments`, {
        amountUsd: 1,
        reason: 'goodwill',
        requestId: 'adjusted',
      })
    ).status;
  await until(
    async () => (await client.spin(partner.key, ticket('first'))).status === 200,
    'a ticket is sold',
  );
  function ticket(requestId: string) {
    return { gameId: raffleId, playerId: 'p1', wagerUsd: 0.25, requestId };
  }
  const bought = await client.spin(partner.key, ticket('first'));
  expect(await adjust()).toBe(200);
  await spin('dropped');
  await untilReleased(redis, 0);
  const filters = idsInRuns();
  await filters.refresh();
  const [entry] = await entriesOf('dropped');
  await until(async () => {
    const [row] = await sql`SELECT count(*)::int AS count FROM request_runs WHERE to_id >= ${entry!}`;
    return row!.count === 0;
  }, 'the run is dropped');
  await filters.refresh();
  expect(filters.mayHave({ cell: 0, partnerId: partner.partnerId }, keyOf('dropped'), 0)).toBe(false);
  await untilFresh('dropped');
  await boundFor('dropped', 3000);
  const again = await client.spin(partner.key, ticket('first'));
  expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([bought.text, 'true']);
  const other = await client.spin(partner.key, { ...ticket('first'), playerId: 'p2' });
  expect(other.body.errorCode).toBe('KS-4111');
  expect(await adjust()).toBe(200);
  const adjusted = await sql`SELECT 1 FROM ledger WHERE kind = 3 AND request_id = 'adjusted'`;
  expect(adjusted.length).toBe(1);
  const [left] = await sql`
    SELECT count(*)::int AS count FROM request_blocks WHERE run_id NOT IN (SELECT run_id FROM request_runs)`;
  expect(left!.count).toBe(0);
  await service!.end();
  expect(await auditFindings(stores)).toEqual([]);
});

test("only a cell's owner moves its binding cut-off, never backwards and never beyond the clock", async () => {
  const [cell] = await sql<{ fence: bigint; binding_ms: bigint }[]>`SELECT fence, binding_ms FROM cells`;
  const { fence, binding_ms } = cell!;
  const before = Number(binding_ms);
  await expect(moveBinding(own, { cell: 0, fence: fence + 1n }, before + 1)).rejects.toThrow('Fencing token');
  expect(await moveBinding(own, { cell: 0, fence }, 1)).toBe(before);
  const [clock] = await sql`SELECT floor(extract(epoch FROM now()) * 1000)::float8 AS ms`;
  const moved = await moveBinding(own, { cell: 0, fence }, before * 2);
  expect(moved).toBeGreaterThanOrEqual(clock!.ms as number);
  expect(moved).toBeLessThan(before * 2);
});

test('a front end reloads the filter of a run whose bytes were replaced under the same run number', async () => {
  await start(LONG);
  for (const requestId of ['mine-1', 'mine-2']) await spin(requestId);
  await untilReleased(redis, 0);
  await service!.end();
  const ids = idsInRuns();
  await ids.refresh();
  const holder = { cell: 0, partnerId: partner.partnerId };
  const [entry] = await entriesOf('mine-1');
  const [run] = await sql`SELECT * FROM request_runs WHERE from_id < ${entry!} AND to_id >= ${entry!}`;
  // After a restore, a database may have another run of request ids with the same number, cell, entries and
  // length.
  const theirs = keyOf('theirs');
  const filter = new RequestFilter(Number(run!.filter_bytes));
  filter.addPairs(Uint32Array.of(theirs.readUInt32BE(0), theirs.readUInt32BE(4), 0, 0));
  const bits = Buffer.from(filter.bytes);
  const hash = createHash('sha256').update(bits).digest().readBigInt64BE(0);
  const pairs = Buffer.concat([theirs.subarray(0, 8), Buffer.alloc(8)]);
  pairs.writeBigUInt64BE(entry!, 8);
  await sql.begin(async (tx) => {
    await tx`UPDATE request_filters SET bits = ${bits} WHERE run_id = ${run!.run_id}`;
    await tx`DELETE FROM request_blocks WHERE run_id = ${run!.run_id}`;
    await tx`INSERT INTO request_blocks VALUES (${run!.run_id}, ${Buffer.alloc(8)}, ${pairs})`;
    await tx`UPDATE request_runs SET filter_hash = ${hash} WHERE run_id = ${run!.run_id}`;
  });
  expect([ids.mayHave(holder, theirs, 0), ids.mayHave(holder, keyOf('mine-1'), 0)]).toEqual([false, true]);
  expect((await ids.find(holder, 'mine-1')).entry).toBe(undefined);
  expect([ids.mayHave(holder, theirs, 0), ids.mayHave(holder, keyOf('mine-1'), 0)]).toEqual([true, false]);
  // A filter whose bytes differ from the written bytes is rejected.
  bits[0]! ^= 1;
  await sql`UPDATE request_filters SET bits = ${bits} WHERE run_id = ${run!.run_id}`;
  await expect(idsInRuns().start()).rejects.toThrow(
    /filter of run \d+ differs from the filter that was written/,
  );
});

test('a front end without memory for the coarsest filters exits at the start and names the setting to raise', async () => {
  await sql`
    INSERT INTO request_runs (cell, from_id, to_id, ids, filter_bytes) VALUES (0, 1, 2, 2000000, 4000000)`;
  await expect(start(LONG, { REQUEST_FILTERS_MAX_MB: '1', ROLES: 'http' })).rejects.toThrow(
    /ended with 1: (.*\n)*spindle: REQUEST_FILTERS_MAX_MB is 1, but the filters of \d+ request ids take at least 3 MB\. Set it to at least 4/,
  );
});
