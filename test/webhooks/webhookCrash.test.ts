/** Tests that a service killed during deliveries delivers every event after its restart, and invents none. */
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SpinIds } from '../../src/domain/spinId.js';
import { freshStores } from '../setup/freshStores.js';
import { expectWithin } from '../support/expectWithin.js';
import { isSigned, type Received, register, startReceiver } from '../support/receiver.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { constants, environment, spawnService, startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

let stores: TestStores;
let books: postgres.Sql;

beforeEach(async () => {
  stores = await freshStores();
  books = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
});
afterEach(async () => {
  await books.end();
  await stores.drop();
});

test('delivers every webhook event after the service was killed in the middle of deliveries', async () => {
  let isSlow = true;
  let held = 0;
  const to = await startReceiver((request, response) => {
    // Some of the first attempts get no response before the service is dead.
    const isHeld = isSlow && Number.parseInt(request.event.id.slice(-1), 16) < 12;
    if (isHeld) held++;
    else response.writeHead(200).end();
  });
  const begin = (): Promise<ServerProcess> =>
    spawnService(environment(stores, constants({ webhookRetryDelaysMs: [50] })));
  let service = await begin();
  const partner = await service.client.newPartner({ largeWinThresholdUsd: 0 });
  const gameId = await service.client.newGame(partner.key, parSheet('classic-3-reel'));
  const { id, secret } = await register(service.client, partner.key, to.url());
  const [installed] = await books<{ spin_id_key: Buffer }[]>`SELECT spin_id_key FROM installation`;
  const spinIds = new SpinIds(installed!.spin_id_key);

  const answered: { spinId: string; payoutUsd: number }[] = [];
  const spin = async (): Promise<void> => {
    const { body } = await service.client.spin<{ spinId: string; outcome: { payoutUsd: number } }>(
      partner.key,
      { gameId, playerId: 'p', wagerUsd: 0.25 },
    );
    answered.push({ spinId: body.spinId, payoutUsd: body.outcome.payoutUsd });
  };
  await Promise.all(Array.from({ length: 80 }, spin));
  await until(() => held >= 4, 'four deliveries are under way, and get no answer');
  // The last spins are acknowledged just before the kill, so they may not be in Postgres yet.
  await Promise.all(Array.from({ length: 20 }, spin));
  expect(await service.end('SIGKILL')).toBe('SIGKILL');
  service = await begin();
  isSlow = false;
  const won = new Map(answered.filter(({ payoutUsd }) => payoutUsd > 0).map((spin) => [spin.spinId, spin]));
  expect(won.size).toBeGreaterThan(10);
  const told = (): Set<string> => new Set(to.received.map(({ event }) => String(event.data.spinId)));
  await until(() => [...won.keys()].every((spinId) => told().has(spinId)), 'every win was told');
  await until(async () => {
    const open = await books`SELECT 1 FROM deliveries WHERE status <> 'delivered'`;
    return open.length === 0;
  }, 'every delivery was made');
  await service.end();

  // Each win in the ledger is delivered under one event id, and nothing else is delivered.
  const wins = await books<{ entry_id: string }[]>`
    SELECT entry_id FROM ledger WHERE kind = 1 AND credit_micros > 0`;
  const expected = wins.map(({ entry_id }) => spinIds.encodeOne(BigInt(entry_id), partner.partnerId));
  expect([...told()].sort()).toEqual(expected.sort());
  const idsBySpin = new Map<string, Set<string>>();
  for (const request of to.received) {
    const spinId = String(request.event.data.spinId);
    idsBySpin.set(spinId, (idsBySpin.get(spinId) ?? new Set()).add(request.event.id));
  }
  for (const ids of idsBySpin.values()) expect(ids.size).toBe(1);
  for (const request of to.received) {
    expect(isSigned(request, secret)).toBe(true);
    const { payoutUsd } = request.event.data;
    expect(won.get(String(request.event.data.spinId))?.payoutUsd ?? payoutUsd).toBe(payoutUsd);
  }
  // Attempts in progress at the kill are repeated with the same attempt number, because their outcome is
  // unknown.
  const again = to.received.filter((request, i) => isRepetition(request, to.received.slice(0, i)));
  expect(again.length).toBeGreaterThanOrEqual(4);
  const rows = await books`SELECT 1 FROM deliveries WHERE webhook_id = ${id}`;
  expect(rows).toHaveLength(expected.length);
  await to.close();
});

test("stops without waiting for a webhook receiver that hangs, and doesn't count the abandoned attempt", async () => {
  const to = await startReceiver(() => {});
  const client = await startService(stores);
  const partner = await client.newPartner({ largeWinThresholdUsd: 0 });
  const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
  await register(client, partner.key, to.url());
  await until(async () => {
    await client.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    return to.received.length > 0;
  }, 'a delivery is under way');
  const started = performance.now();
  await client.stop();
  // An attempt to a receiver that hangs takes 15 s.
  expectWithin(performance.now() - started, 14_000);
  const rows = await books<{ status: string; attempts: number; free: boolean }[]>`
    SELECT status, attempts, leased_until < now() AS free FROM deliveries`;
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) expect(row).toEqual({ status: 'pending', attempts: 0, free: true });
  // The next start repeats the attempts at once.
  const before = to.received.length;
  const again = await startService(stores);
  await until(() => to.received.length > before, 'it is made again');
  expect(to.received.at(-1)!.headers['x-spindle-attempt']).toBe('1');
  await to.close();
  await again.stop();
});

const isRepetition = ({ headers }: Received, before: readonly Received[]): boolean =>
  before.some(
    (other) =>
      other.headers['x-spindle-delivery-id'] === headers['x-spindle-delivery-id'] &&
      other.headers['x-spindle-attempt'] === headers['x-spindle-attempt'],
  );
