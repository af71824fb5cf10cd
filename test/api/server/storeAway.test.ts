/**
 * Tests the answers while a store is down: replays where possible, otherwise KS-5002 with Retry-After, and
 * rate limit headers that promise no further requests.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import { OPERATOR_KEY, type TestPartner } from '../../support/client.js';
import { command } from '../../support/command.js';
import { rawRedis } from '../../support/redis.js';
import { untilReleased } from '../../support/requestSegments.js';
import { environment, spawnService, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

let stores: OwnStores;
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  stores = await ownStores();
  service = await startService(stores, { SPIN_DEADLINE_MS: '2500' });
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});
// Each test starts with both stores running and a service that is ready.
afterEach(() => until(async () => (await service.request('GET', '/statusz')).status === 200, 'all is well'));
afterAll(async () => {
  await service?.stop();
  await stores?.drop();
});

const spin = (game: number, requestId: string) =>
  service.spin(partner.key, { gameId: game, playerId: 'p', wagerUsd: 0.25, requestId });

test('without Postgres, checks a bound requestId before an unknown game, and never answers KS-5001', async () => {
  const first = await spin(gameId, 'bound');
  expect(first.status).toBe(200);
  await stores.postgres.stop();
  const replay = await spin(gameId, 'bound');
  expect(replay).toMatchObject({ status: 200, text: first.text });
  expect(await spin(999_999, 'bound')).toMatchObject({ status: 409, body: { errorCode: 'KS-4111' } });
  const unknown = await spin(999_999, 'free');
  expect(unknown).toMatchObject({ status: 503, body: { errorCode: 'KS-5002' } });
  expect(unknown.headers.get('retry-after')).toBeTruthy();
  const choice = { gameId: 999_999, playerId: 'p', combinationIndex: 0 };
  const chosen = await service.partner('POST', '/sandbox/next-outcome', partner.key, choice);
  expect(chosen).toMatchObject({ status: 503, body: { errorCode: 'KS-5002' } });
  for (const path of ['/par-sheets', '/games', '/webhooks', '/settlements']) {
    const answer = await service.partner('GET', path, partner.key);
    expect(answer, path).toMatchObject({ status: 503, body: { errorCode: 'KS-5002' } });
    expect(answer.headers.get('retry-after'), path).toBeTruthy();
  }
  const operator = await service.request('GET', '/api/operator/v1/audit-log', { key: OPERATOR_KEY });
  expect(operator).toMatchObject({ status: 503, body: { errorCode: 'KS-5002' } });
  await stores.postgres.start();
});

test('without Postgres, answers KS-5002 to a requestId that the ledger may have, and deals a new one', async () => {
  await service.stop();
  service = await startService(stores, { REQUEST_ID_WINDOW_S: '1' });
  const redis = rawRedis(stores.redisUrl);
  const send = (requestId: string) => spin(gameId, requestId);
  try {
    await until(async () => (await send('old')).status === 200, 'the first spin is dealt');
    const first = await send('old');
    for (const key of await redis.keys('{c*}:outbox'))
      await untilReleased(redis, Number(/\d+/.exec(key)![0]));
    // Once the front end answers this probe, it has loaded the filters of all released request ids.
    await until(async () => (await send('probe')).status === 200, 'the front end has read the filters');
    await stores.postgres.stop();
    for (let i = 0; i < 3; i++)
      expect(await send('old')).toMatchObject({ status: 503, body: { errorCode: 'KS-5002' } });
    for (let i = 0; i < 5; i++)
      await until(async () => (await send(`fresh-${i}`)).status === 200, 'a fresh spin is dealt');
    await stores.postgres.start();
    await until(async () => (await send('old')).text === first.text, 'the ledger is asked again');
  } finally {
    redis.disconnect();
  }
}, 120_000);

test('shows no rate limit window that was not read, while Redis is down', async () => {
  await stores.redis.stop();
  for (const answer of [await spin(gameId, 'r'), await service.partner('GET', '/games', partner.key)]) {
    expect(answer.status).toBe(503);
    const shown = [...answer.headers.keys()].filter((name) => /ratelimit/.test(name));
    expect(shown).toEqual([]);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  await stores.redis.start();
});

test('a worker reports on its metrics port whether it is ready, and what is missing if it is not', async () => {
  const worker = await startService(stores, { ROLES: 'worker' });
  const ready = () => fetch(`http://127.0.0.1:${worker.running.metricsPort}/statusz`);
  try {
    await until(async () => (await ready()).status === 200, 'the worker is ready');
    await stores.postgres.stop();
    await until(async () => (await ready()).status === 503, 'the worker is not ready');
    expect(await (await ready()).text()).toContain('Postgres does not respond');
    await stores.postgres.start();
  } finally {
    await worker.stop();
  }
});

/** Returns the answer of /statusz. */
const statusz = (of: Pick<typeof service, 'request'> = service) =>
  of.request<{ status: string; waiting: string[]; problems: { name: string }[] }>('GET', '/statusz');

test('health checks answer with the last known state before the check of a hanging Postgres ends', async () => {
  await until(async () => (await statusz()).status === 200, 'the state is known');
  await stores.postgres.freeze();
  try {
    // The check names Postgres when it ends. An answer without it came before that.
    expect((await statusz()).body).toMatchObject({ status: 'well', waiting: [] });
    expect(await service.request('GET', '/readyz')).toMatchObject({ status: 200 });
    await until(
      async () => (await statusz()).body.problems.some(({ name }) => name === 'postgres-away'),
      'the hanging Postgres is named',
    );
    expect(await service.request('GET', '/readyz')).toMatchObject({ status: 200 });
  } finally {
    stores.postgres.thaw();
  }
});

test('names the cells without a worker after the only worker was killed, while spins are dealt', async () => {
  const own = await freshStores();
  const worker = () => spawnService(environment(own, { ROLES: 'worker' }));
  let running = await worker();
  const front = await startService(own, { ROLES: 'http' });
  try {
    const { key } = await front.newPartner();
    const game = await front.newGame(key, parSheet('classic-3-reel'));
    await until(async () => (await statusz(front)).status === 200, 'all is well');
    await running.end('SIGKILL');
    await until(async () => (await statusz(front)).status === 503, 'a problem is named');
    expect((await statusz(front)).body).toMatchObject({
      status: 'degraded',
      waiting: [expect.stringMatching(/^No worker is alive, so none owns cells 0, 1, 2, 3 since 20/)],
      problems: [{ name: 'cells-not-served', effect: 'WORK_WAITS' }],
    });
    expect((await front.spin(key, { gameId: game, playerId: 'p', wagerUsd: 0.25 })).status).toBe(200);
    running = await worker();
    await until(async () => (await statusz(front)).status === 200, 'the cells have a worker again');
  } finally {
    await front.stop();
    await running.stop();
    await own.drop();
  }
});

test('spindle overview begins with the problem because of which spins are refused', async () => {
  await stores.redis.stop();
  const { out } = await command(service, 'overview');
  expect(out).toMatch(/^Redis does not respond \(since 20.*Z\)\n {2}All spins are refused/);
  await stores.redis.start();
});

test('spindle overview names a hanging Postgres instead of waiting for it', async () => {
  await stores.postgres.freeze();
  try {
    await until(
      async () => (await statusz()).body.problems.some(({ name }) => name === 'postgres-away'),
      'the hanging Postgres is named',
    );
    // An overview that reads from Postgres would fail with the timeout of its statement and name nothing.
    const { status, error } = await command(service, 'overview');
    expect(status).toBe(1);
    expect(error).toContain('KS-5002');
    expect(error).toContain('Postgres does not respond. Loaded outcomes are dealt');
  } finally {
    stores.postgres.thaw();
  }
});

test('answers KS-4216 to a gameType of any wrong type', async () => {
  const parSheetId = await service.api.addSheet(partner.key, parSheet('classic-3-reel'));
  for (const gameType of [1, null, {}, ['slot'], true, 'raffle', '']) {
    const body = { parSheetId, displayName: 'g', configName: 'G', gameType };
    expect(
      await service.partner('POST', '/games', partner.key, body),
      JSON.stringify(gameType),
    ).toMatchObject({
      status: 400,
      body: { errorCode: 'KS-4216' },
    });
  }
});
