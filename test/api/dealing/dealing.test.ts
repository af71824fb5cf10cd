/**
 * Tests the dealing switches. A switch takes effect everywhere within a second, even on a front end that has
 * lost Postgres. Replays and open rounds continue.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { timeoutFor } from '../../support/expectWithin.js';
import { proxy } from '../../support/proxy.js';
import { deal, newTable, playOut } from '../../support/rounds.js';
import { constants, environment, spawnService, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const HELD_WITHIN_MS = timeoutFor(1000);

let stores: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  stores = await freshStores();
  service = await startService(stores);
});
beforeEach(async () => {
  await setAll('ON');
  partner = await service.newPartner({ spinRateLimit: 100_000, apiRateLimit: 100_000 });
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});
afterAll(async () => {
  await service?.stop();
  await stores?.drop();
});

const setAll = (state: 'ON' | 'OFF') => service.operator('PUT', '/dealing', { state, reason: 'test' });
const setOwn = (dealing: 'ON' | 'OFF') =>
  service.operator('PATCH', `/partners/${partner.partnerId}`, { dealing });
const spin = (requestId?: string, at: Pick<typeof service, 'spin'> = service, of = gameId) =>
  at.spin(partner.key, {
    gameId: of,
    playerId: 'p',
    wagerUsd: 0.25,
    ...(requestId === undefined ? {} : { requestId }),
  });
const statuses = async (key = partner.key): Promise<unknown[]> => {
  const { body } = await service.partner<{ events: { event: string; data: unknown }[] }>(
    'GET',
    '/events',
    key,
  );
  expect(body.events, JSON.stringify(body)).toBeDefined();
  return body.events.filter(({ event }) => event === 'game.status_changed').map(({ data }) => data);
};

/** Creates a playable raffle of two tickets. */
async function newRaffle(configName: string): Promise<number> {
  const { body } = await service.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partner.partnerId}/raffles`,
    {
      displayName: configName,
      configName,
      ticketPriceUsd: 0.25,
      poolSize: 2,
      prizes: [{ prizeName: 'Prize', prizeTier: 1, valueUsd: 0.25, count: 1 }],
    },
  );
  const id = body.gameConfigId;
  expect(id).toBeGreaterThan(0);
  await until(
    async () => (await service.operator('GET', `/games/${id}`)).body.status === 'ACTIVE',
    'the raffle is open',
  );
  return id;
}

test.each([
  ['all games', setAll, 'SWITCH'],
  ["the partner's games", setOwn, 'PARTNER_SWITCH'],
] as const)(
  'switching dealing off for %s refuses new spins, still answers replays and lets open rounds finish',
  async (_of, set, reason) => {
    const table = await newTable(service, partner.partnerId);
    const raffle = await newRaffle(`R_${reason}`);
    const first = await spin('first');
    expect(first.status, first.text).toBe(200);
    let round = await deal(service, partner.key, table, 'q', 'deal-1');
    for (let i = 2; round.body.status !== 'OPEN'; i++)
      round = await deal(service, partner.key, table, `q${i}`, `deal-${i}`);

    expect((await set('OFF')).status).toBe(200);
    for (const id of [gameId, raffle]) {
      const refused = await spin('new', service, id);
      expect(refused).toMatchObject({ status: 503, body: { errorCode: 'KS-5013' } });
      expect(refused.headers.get('retry-after')).not.toBeNull();
    }
    const dealt = await deal(service, partner.key, table, 'r', 'deal-off');
    expect(dealt).toMatchObject({ status: 503, body: { errorCode: 'KS-5013' } });
    expect((await spin('new', service, 999_999)).body.errorCode).toBe('KS-4006');
    expect((await spin('first')).text).toBe(first.text);
    const conflict = await service.spin(partner.key, {
      gameId,
      playerId: 'other',
      wagerUsd: 0.25,
      requestId: 'first',
    });
    expect(conflict.body.errorCode).toBe('KS-4111');
    expect((await playOut(service, partner.key, round.body)).status).toBe('SETTLED');
    // The dealing switch is checked before the status of the game.
    await service.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' });
    expect((await spin()).body.errorCode).toBe('KS-5013');
    await service.operator('PATCH', `/games/${gameId}`, { status: 'ACTIVE' });

    expect((await set('OFF')).status).toBe(200);
    expect((await set('ON')).status).toBe(200);
    await until(async () => (await spin('new')).status === 200, 'the game goes on', HELD_WITHIN_MS);
    expect(await statuses()).toEqual([
      ...[gameId, table, raffle].map((id) => ({ gameId: id, status: 'DEALING_OFF', reason })),
      { gameId, status: 'SUSPENDED', reason: 'OPERATOR' },
      { gameId, status: 'DEALING_OFF', reason: 'OPERATOR' },
      ...[gameId, table, raffle].map((id) => ({ gameId: id, status: 'ACTIVE', reason })),
    ]);
  },
);

test('applies the dealing switch of a partner to that partner only, and the global switch to all partners', async () => {
  const other = await service.newPartner();
  const otherGame = await service.newGame(other.key, parSheet('classic-3-reel'));
  const otherSpin = () => service.spin(other.key, { gameId: otherGame, playerId: 'p', wagerUsd: 0.25 });
  await setOwn('OFF');
  expect((await otherSpin()).status).toBe(200);
  await setAll('OFF');
  await setOwn('ON');
  expect((await spin()).body.errorCode).toBe('KS-5013');
  expect((await otherSpin()).body.errorCode).toBe('KS-5013');
  await setAll('ON');
  expect((await spin()).status).toBe(200);
  expect(await statuses(other.key)).toEqual([
    { gameId: otherGame, status: 'DEALING_OFF', reason: 'SWITCH' },
    { gameId: otherGame, status: 'ACTIVE', reason: 'SWITCH' },
  ]);
});

test('sends one game status event when a raffle is sold out', async () => {
  const raffle = await newRaffle('SOLD');
  for (const id of ['t1', 't2']) expect((await spin(id, service, raffle)).status).toBe(200);
  await until(async () => (await statuses()).length > 0, 'the event is there');
  expect(await statuses()).toEqual([{ gameId: raffle, status: 'CLOSED', reason: 'SOLD_OUT' }]);
});

test('records who set a dealing switch and why in the audit log, and applies the switch to processes that start later', async () => {
  expect(await service.operator('PUT', '/dealing', { state: 'OFF' })).toMatchObject({ status: 400 });
  const set = await service.operator('PUT', '/dealing', { state: 'OFF', reason: 'A look at payouts' });
  expect(set.body).toMatchObject({ state: 'OFF', reason: 'A look at payouts', actor: 'operator' });
  expect((await service.operator('GET', '/dealing')).body).toEqual(set.body);
  const later = await startService(stores, { ROLES: 'http' });
  try {
    expect((await spin(undefined, later)).body.errorCode).toBe('KS-5013');
  } finally {
    await later.stop();
  }
  const log = await service.operator<{ entries: unknown[] }>(
    'GET',
    '/audit-log?action=dealing.switch&limit=1',
  );
  expect(log.body.entries[0]).toMatchObject({
    subject: 'dealing',
    before: { state: 'ON' },
    after: { state: 'OFF', reason: 'A look at payouts' },
  });
});

test('deals no spin under load more than a second after dealing was switched off, on any front end', async () => {
  const front = await startService(stores, { ROLES: 'http' });
  try {
    let isOver = false;
    let newestDealtAt = 0;
    let answered = 0;
    const load = Array.from({ length: 16 }, async (_, i) => {
      const at = i % 2 === 0 ? service : front;
      while (!isOver) {
        const { status, body } = await spin(undefined, at);
        if (status !== 200) expect(['KS-5013', 'KS-4291']).toContain(body.errorCode);
        answered++;
        // The time in the ledger entry is checked, because the response may arrive later.
        if (status === 200) newestDealtAt = Math.max(newestDealtAt, await dealtAt(body.spinId as string));
      }
    });
    await until(() => answered > 100, 'the load runs');
    const { body } = await setAll('OFF');
    const changedAt = Date.parse(body.changedAt as string);
    const before = answered;
    await until(() => answered > before + 200, 'the load goes on');
    isOver = true;
    await Promise.all(load);
    expect(newestDealtAt).toBeGreaterThan(0);
    expect(newestDealtAt - changedAt).toBeLessThan(HELD_WITHIN_MS);
  } finally {
    await front.stop();
  }
});

const dealtAt = async (spinId: string): Promise<number> => {
  let createdAt: string | undefined;
  await until(async () => {
    const { body } = await service.partner<{ createdAt?: string }>('GET', `/spins/${spinId}`, partner.key);
    createdAt = body.createdAt;
    return createdAt !== undefined;
  }, 'the spin is on record');
  return Date.parse(createdAt!);
};

test('a front end that has lost Postgres deals nothing once dealing is switched off', async () => {
  const cable = await proxy(stores.databaseUrl);
  const front = await startService(
    { ...stores, databaseUrl: cable.url },
    { ROLES: 'http', TEST_CONSTANTS: undefined },
  );
  try {
    expect((await spin(undefined, front)).status).toBe(200);
    await cable.close();
    expect((await spin(undefined, front)).status).toBe(200);
    await setAll('OFF');
    await until(async () => (await spin(undefined, front)).status !== 200, 'it refuses', HELD_WITHIN_MS);
    expect((await spin(undefined, front)).body.errorCode).toBe('KS-5002');
  } finally {
    await front.stop();
    await cable.close();
  }
});

test('a front end that was paused deals none of the spins sent to it while dealing was switched off', async () => {
  const settings = { ROLES: 'http', ...constants({ restrictionReadMs: 600 }) };
  const front = await spawnService(environment(stores, settings));
  try {
    expect((await spin(undefined, front.client)).status).toBe(200);
    for (let round = 0; round < 5; round++) {
      await setAll('ON');
      await until(async () => (await spin(undefined, front.client)).status === 200, 'it deals');
      front.freeze();
      const sent = Array.from({ length: 20 }, () => spin(undefined, front.client));
      await setAll('OFF');
      const until2s = performance.now() + 2000;
      await until(() => performance.now() > until2s, 'more than a second has passed');
      front.thaw();
      for (const { status, body } of await Promise.all(sent)) {
        expect(status).toBe(503);
        expect(['KS-5002', 'KS-5013']).toContain(body.errorCode);
      }
    }
  } finally {
    front.thaw();
    await front.end('SIGTERM');
  }
});
