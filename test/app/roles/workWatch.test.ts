/**
 * Tests how a worker finds its work in Postgres with one query, and wakes exactly the tasks for that work.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { findWork } from '../../../src/app/roles/work.store.js';
import { workWatch } from '../../../src/app/roles/workWatch.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import { Cleanup } from '../../support/cleanup.js';
import { startService } from '../../support/service.js';
import { until } from '../../support/wait.js';

const PRIZES = [{ prizeName: 'Mug', prizeTier: 2, valueUsd: 1, count: 1 }];
const RAFFLE = { ticketPriceUsd: 1, poolSize: 10, prizes: PRIZES };

const cleanup = new Cleanup();
let sql: postgres.Sql;
let look: ReturnType<typeof workWatch>;
let partnerId: number;
let home: number;
let cells: number[];
const woken: string[] = [];

beforeAll(async () => {
  const stores = await freshStores();
  cleanup.add(() => stores.drop());
  sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => sql.end());
  const own = connectPostgres(stores.databaseUrl, { max: 1, name: 'watch', onError: () => {} });
  cleanup.add(() => own.end());
  const service = await startService(stores, { CELLS: '2' });
  const partner = await service.newPartner();
  ({ partnerId } = partner);
  const webhook = { url: 'http://localhost:1/', events: ['spin.large_win'] };
  expect((await service.partner('POST', '/webhooks', partner.key, webhook)).status).toBe(201);
  await service.api.newRaffle(partnerId, 'watched', RAFFLE);
  await until(async () => !(await findWork(own, [])).isLogBehind, 'all is published');
  await service.stop();
  home = (await sql<{ cell: number }[]>`SELECT cell FROM partners WHERE partner_id = ${partnerId}`)[0]!.cell;
  const waking = (name: string) => ({ wake: () => void woken.push(name) });
  look = workWatch({
    sql: own,
    cells: () => cells,
    moves: waking('moves'),
    voids: waking('voids'),
    playerStatuses: waking('statuses'),
    roundTimeouts: waking('rounds'),
    mailer: waking('mailer'),
    deliverer: waking('deliverer'),
    publicLog: waking('log'),
    copies: waking('copies'),
  });
});
afterAll(() => cleanup.run());

beforeEach(() => {
  cells = [home];
});

async function wokenByALook(): Promise<string[]> {
  woken.length = 0;
  await look(new AbortController().signal);
  return [...woken].sort();
}

test('wakes all tasks of the public log at the first check for work, and none at the next check', async () => {
  expect(await wokenByALook()).toEqual(['copies', 'log']);
  expect(await wokenByALook()).toEqual([]);
});

test.each([
  [
    'moves',
    () =>
      sql`INSERT INTO partner_moves (partner_id, from_cell, to_cell) VALUES (${partnerId}, ${home}, ${1 - home})`,
    () => sql`UPDATE partner_moves SET finished_at = now()`,
  ],
  [
    'voids',
    () => sql`UPDATE raffles SET voided_at = now(), voided_by = 'test', void_reason = 'test'`,
    () => sql`UPDATE raffles SET refunds_done_at = now()`,
  ],
  [
    'statuses',
    () =>
      sql`INSERT INTO player_status_intents (partner_id, player_id, change) VALUES (${partnerId}, 'p', 1)`,
    () => sql`DELETE FROM player_status_intents`,
  ],
  [
    'rounds',
    () => sql`
      INSERT INTO rounds (game_id, shoe_index, partner_id, player_id, deal_id, status, entry_ids, wagers_micros, balances_micros, expires_at)
      VALUES (1, 1, ${partnerId}, 'p', 1, 'OPEN', '{1}', '{1}', '{1}', now())`,
    () => sql`DELETE FROM rounds`,
  ],
])("wakes the task %s for the worker's own cells until the work is done", async (name, begin, end) => {
  await begin();
  expect(await wokenByALook()).toEqual([name]);
  expect(await wokenByALook()).toEqual([name]);
  cells = [1 - home];
  expect(await wokenByALook()).toEqual([]);
  cells = [home];
  await end();
  expect(await wokenByALook()).toEqual([]);
});

test.each([
  ['mailer', { recipient: 'somebody@example.com' }],
  ['deliverer', { webhook_id: 1 }],
])('wakes the task %s for deliveries that are due before the next check', async (name, to) => {
  const event = {
    event_id: name,
    partner_id: partnerId,
    event: 'watched',
    body: '{}',
    created_at: new Date(),
  };
  await sql`INSERT INTO events ${sql(event)}`;
  const due = { ...to, delivery_id: name, event_id: name, max_attempts: 1, next_attempt_at: new Date() };
  await sql`INSERT INTO deliveries ${sql(due)}`;
  expect(await wokenByALook()).toEqual([name]);
  await sql`UPDATE deliveries SET next_attempt_at = now() + interval '1 hour'`;
  expect(await wokenByALook()).toEqual([]);
});

test('wakes the tasks of the public log once for each change, and repeatedly while the log is behind and not halted', async () => {
  // The checkpoint's note becomes longer when cosignatures are added to it.
  await sql`UPDATE log_checkpoints SET note = note || 'more'`;
  expect(await wokenByALook()).toEqual(['copies', 'log']);
  expect(await wokenByALook()).toEqual([]);
  await sql`UPDATE logs SET size = size + 1`;
  expect(await wokenByALook()).toEqual(['copies', 'log']);
  expect(await wokenByALook()).toEqual(['log']);
  await sql`UPDATE logs SET halt = 'test', halt_note = 'test', halted_at = now(), is_held = false`;
  expect(await wokenByALook()).toEqual(['copies', 'log']);
  expect(await wokenByALook()).toEqual([]);
});
