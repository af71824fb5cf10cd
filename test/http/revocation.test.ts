/** A change that a front end can't read, because it has lost Postgres, holds there all the same, within a second. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { OPERATOR_KEY, type TestPartner } from '../support/client.js';
import { type Cable, proxy } from '../support/proxy.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { promisedMs, until } from '../support/wait.js';

const HELD_WITHIN_MS = promisedMs(1000);

let stores: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let front: Awaited<ReturnType<typeof startService>>;
let cable: Cable;
let partner: TestPartner;
let other: TestPartner;
let gameId: number;
let otherGameId: number;

beforeAll(async () => {
  stores = await freshStores();
  service = await startService(stores);
  other = await service.newPartner();
  otherGameId = await service.newGame(other.key, parSheet('classic-3-reel'));
});

beforeEach(async () => {
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  cable = await proxy(stores.databaseUrl);
  front = await startService(
    { ...stores, databaseUrl: cable.url },
    { ROLES: 'http', RESTRICTION_READ_MS: '600' },
  );
  return async () => {
    await front.stop();
    await cable.close();
  };
});

afterAll(async () => {
  await service?.stop();
  await stores?.drop();
});

const spin = (key = partner.key, id = gameId) =>
  front.spin(key, { gameId: id, playerId: 'p', wagerUsd: 0.25 });
const codeOf = async (): Promise<unknown> => (await spin()).body.errorCode;

/** The front end reaches Postgres no more: connections are refused, or bring nothing back. */
const losses: readonly (readonly [name: string, lose: () => Promise<void>])[] = [
  ['refused', () => cable.close()],
  [
    'silent',
    async () => {
      cable.answers = false;
    },
  ],
];
const changes: readonly (readonly [name: string, change: () => Promise<{ readonly status: number }>])[] = [
  [
    'a revoked key',
    async () => {
      const { body } = await service.operator<{ keys: { keyId: number }[] }>(
        'GET',
        `/partners/${partner.partnerId}/keys`,
      );
      return service.operator('DELETE', `/partners/${partner.partnerId}/keys/${body.keys[0]!.keyId}`);
    },
  ],
  [
    'a deactivated partner',
    () => service.operator('PATCH', `/partners/${partner.partnerId}`, { isActive: false }),
  ],
  ['a suspended game', () => service.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' })],
];

for (const [loss, lose] of losses) {
  for (const [name, change] of changes) {
    test(`${name} is not accepted by a front end whose connections to Postgres are ${loss}`, async () => {
      expect((await spin()).status).toBe(200);
      await lose();
      // Nothing has changed: it goes on by what it knows.
      expect((await spin()).status).toBe(200);
      expect((await change()).status).toBeLessThan(300);
      await until(async () => (await spin()).status !== 200, `${name} holds`, HELD_WITHIN_MS);
      expect(await codeOf()).toBe('KS-5002');
      expect((await spin(other.key, otherGameId)).status).toBe(503);
    });
  }
}

test('a revoked operator key is not accepted by a front end that has lost Postgres, and the first key is', async () => {
  const { body } = await service.operator('POST', '/operators', { name: 'gone', role: 'admin' });
  const ask = (key: string) => front.request('GET', '/api/operator/v1/session', { key });
  expect((await ask(body.apiKey as string)).status).toBe(200);
  await cable.close();
  expect((await ask(body.apiKey as string)).status).toBe(200);
  expect((await service.operator('DELETE', '/operators/gone')).status).toBe(204);
  await until(async () => (await ask(body.apiKey as string)).status !== 200, 'the revocation holds');
  expect((await ask(body.apiKey as string)).body.errorCode).toBe('KS-5002');
  expect((await ask(OPERATOR_KEY)).status).toBe(200);
});

test('a front end that reaches Postgres again goes on, and knows the change', async () => {
  cable.answers = false;
  await service.operator('PATCH', `/partners/${partner.partnerId}`, { isActive: false });
  await until(async () => (await spin()).status !== 200, 'the front end refuses', HELD_WITHIN_MS);
  cable.answers = true;
  cable.cut();
  await until(async () => (await spin(other.key, otherGameId)).status === 200, 'the front end goes on');
  expect(await codeOf()).toBe('KS-4005');
});
