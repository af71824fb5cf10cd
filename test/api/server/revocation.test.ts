/**
 * Tests that a change takes effect on every front end within a second, even on a front end that has lost
 * Postgres and can't read the change, or one that gets no announcements.
 */
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { Catalog } from '../../../src/engine/catalog/catalog.js';
import { CatalogAnnouncements } from '../../../src/engine/catalog/catalogAnnouncements.js';
import { EventEmitter } from '../../../src/engine/processEvents.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { world } from '../../setup/world.js';
import { Cleanup } from '../../support/cleanup.js';
import { OPERATOR_KEY, type TestPartner } from '../../support/client.js';
import { timeoutFor } from '../../support/expectWithin.js';
import { type Cable, proxy } from '../../support/proxy.js';
import { openNodes, rawRedis } from '../../support/redis.js';
import { deafUrl } from '../../support/redisUser.js';
import { constants, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const NEVER_POLLS = constants({ catalogPollMs: 3_600_000 });
const HELD_WITHIN_MS = timeoutFor(1000);

const { stores, service, partner: other } = world();
let front: Awaited<ReturnType<typeof startService>>;
let cable: Cable;
let partner: TestPartner;
let gameId: number;
let otherGameId: number;

beforeAll(async () => {
  otherGameId = await service.newGame(other.key, parSheet('classic-3-reel'));
});

beforeEach(async () => {
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  cable = await proxy(stores.databaseUrl);
  front = await startService(
    { ...stores, databaseUrl: cable.url },
    { ROLES: 'http', TEST_CONSTANTS: undefined },
  );
  return async () => {
    await front.stop();
    await cable.close();
  };
});

const spin = (key = partner.key, id = gameId) =>
  front.spin(key, { gameId: id, playerId: 'p', wagerUsd: 0.25 });
const codeOf = async (): Promise<unknown> => (await spin()).body.errorCode;

/** Ways in which the front end loses Postgres: its connections are refused, or it gets no answers. */
const losses: readonly (readonly [name: string, lose: () => Promise<void>])[] = [
  ['refused', () => cable.close()],
  [
    'silent',
    async () => {
      cable.answers = false;
    },
  ],
];
const revoke = async () => {
  const { body } = await service.operator<{ keys: { keyId: number }[] }>(
    'GET',
    `/partners/${partner.partnerId}/keys`,
  );
  return service.operator('DELETE', `/partners/${partner.partnerId}/keys/${body.keys[0]!.keyId}`);
};
const changes: readonly (readonly [name: string, change: () => Promise<{ readonly status: number }>])[] = [
  ['a revoked key', revoke],
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
      // As long as nothing changes, the front end continues with its catalog.
      expect((await spin()).status).toBe(200);
      expect((await change()).status).toBeLessThan(300);
      await until(async () => (await spin()).status !== 200, `${name} holds`, HELD_WITHIN_MS);
      expect(await codeOf()).toBe('KS-5002');
      expect((await spin(other.key, otherGameId)).status).toBe(503);
    });
  }
}

test('a front end that has lost Postgres refuses a revoked operator key, but accepts the first key', async () => {
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

test('a front end that reaches Postgres again serves requests and has read the change', async () => {
  cable.answers = false;
  await service.operator('PATCH', `/partners/${partner.partnerId}`, { isActive: false });
  await until(async () => (await spin()).status !== 200, 'the front end refuses', HELD_WITHIN_MS);
  cable.answers = true;
  cable.cut();
  await until(async () => (await spin(other.key, otherGameId)).status === 200, 'the front end goes on');
  expect(await codeOf()).toBe('KS-4005');
});

test('a front end that gets no announcements refuses a revoked key within a second', async () => {
  const deaf = await startService({ ...stores, redisUrl: await deafUrl(stores.redisUrl) }, { ROLES: 'http' });
  try {
    const ask = () => deaf.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    expect((await ask()).status).toBe(200);
    expect((await revoke()).status).toBe(204);
    await until(async () => (await ask()).body.errorCode === 'KS-4003', 'it is refused', HELD_WITHIN_MS);
  } finally {
    await deaf.stop();
  }
});

test('a front end that is asked for a new game reads it from Postgres before the announcement of the game arrives', async () => {
  const redisUrl = await deafUrl(stores.redisUrl);
  const behind = await startService({ ...stores, redisUrl }, { ROLES: 'http', ...NEVER_POLLS });
  try {
    const { key } = await service.newPartner();
    const gameId = await service.newGame(key, parSheet('classic-3-reel'));
    const seen = await behind.operator('GET', `/games/${gameId}`);
    expect(seen).toMatchObject({ status: 200, body: { gameConfigId: gameId } });

    // The second game is spun on another front end before its announcement reaches this front end.
    expect((await behind.partner('GET', '/version', key)).status).toBe(200);
    const second = await service.newGame(key, parSheet('penny-sub-cent'));
    const spun = await service.spin(key, { gameId: second, playerId: 'p', wagerUsd: 0.01 });
    expect(spun.status).toBe(200);
    const record = await behind.partner('GET', `/spins/${spun.body.spinId}`, key);
    expect(record).toMatchObject({ status: 200, body: { ...spun.body, gameId: second } });
    const third = await service.newGame(key, parSheet('penny-sub-cent'));
    await service.spin(key, { gameId: third, playerId: 'p', wagerUsd: 0.01 });
    const list = await behind.partner('GET', '/players/p/spins', key);
    expect(list).toMatchObject({ status: 200, body: { total: 2 } });
  } finally {
    await behind.stop();
  }
});

test('reads changes within a second even if the connections for announcements keep breaking', async () => {
  const redis = rawRedis(stores.redisUrl);
  const database = new URL(stores.redisUrl).pathname.slice(1);
  let isOver = false;
  let cut = 0;
  const cutting = (async () => {
    while (!isOver) {
      const clients = (await redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')) as string;
      for (const [, id] of clients.matchAll(new RegExp(`^id=(\\d+) .* db=${database} `, 'gm')))
        cut += Number(await redis.call('CLIENT', 'KILL', 'ID', id!));
    }
  })();
  try {
    await until(() => cut > 0, 'the first connection is cut');
    expect((await spin()).status).toBe(200);
    expect((await revoke()).status).toBe(204);
    await until(async () => (await codeOf()) === 'KS-4003', 'it is refused', HELD_WITHIN_MS);
  } finally {
    isOver = true;
    await cutting;
    redis.disconnect();
  }
});

test("a front end that doesn't poll Postgres learns of changes from another process that does", async () => {
  await service.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' });
  const listener = await startService(stores, { ROLES: 'http', ...NEVER_POLLS });
  try {
    const ask = () => listener.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    expect((await ask()).body.errorCode).toBe('KS-4202');
    await service.operator('PATCH', `/games/${gameId}`, { status: 'ACTIVE' });
    await until(async () => (await ask()).status === 200, 'the game is active again');
  } finally {
    await listener.stop();
  }
});

test('about one of several idle processes polls Postgres for changes, and announces what it reads to the others', async () => {
  const cleanup = new Cleanup();
  const sql = connectPostgres(stores.databaseUrl, { max: 4, name: 'catalogs', onError: () => {} });
  cleanup.add(() => sql.end());
  let reads = 0;
  let told = 0;
  const counting = Object.assign(
    (...query: Parameters<Sql>) => {
      reads++;
      return sql(...query);
    },
    sql,
    {
      prepared: (...query: Parameters<Sql>) => {
        reads++;
        return sql.prepared(...query);
      },
    },
  ) as Sql;
  try {
    for (let i = 0; i < 4; i++) {
      const { nodes, close } = await openNodes(stores.redisUrl);
      cleanup.add(close);
      const events = new EventEmitter(() => {});
      events.on('CatalogRead', () => told++);
      const catalog = new Catalog(counting, 200, events);
      await catalog.start();
      cleanup.add(() => catalog.stop());
      const announcements = new CatalogAnnouncements({
        catalog,
        nodes,
        events,
        datasetId: 'idle',
        staleness: { heard: () => {} },
        onError: () => {},
      });
      await announcements.start();
      cleanup.add(() => announcements.stop());
    }
    // If each process polled on its own, there would be four reads for each announcement.
    await until(async () => {
      const [readBefore, toldBefore] = [reads, told];
      await until(() => told >= toldBefore + 10, 'ten reads are told');
      return reads - readBefore <= 2 * (told - toldBefore);
    }, 'the others hear what one reads');
  } finally {
    await cleanup.run();
  }
});
