/**
 * Tests the end of an API version: its notice period, the headers of every answer, the webhook events, and
 * the stored state (docs/contract.md §16).
 */
import postgres from 'postgres';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { remindOfSunsets } from '../../../src/engine/catalog/apiVersions.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import type { Answer, Client } from '../../support/client.js';
import { expectWithin } from '../../support/expectWithin.js';
import { type Receiver, register, startReceiver } from '../../support/receiver.js';
import { constants, environment, spawnService, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const EVENT = 'api.version.deprecated';

type Service = Awaited<ReturnType<typeof startService>>;
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

async function service(more: NodeJS.ProcessEnv = {}, now = Date.now): Promise<Service> {
  const started = await startService(stores, { ...constants({ apiNoticeDays: 0 }), ...more }, { now });
  onTestFinished(() => started.stop());
  return started;
}

async function receiver(): Promise<Receiver> {
  const started = await startReceiver();
  onTestFinished(() => started.close());
  return started;
}

const deprecate = (client: Client, body: unknown, version = 'v1') =>
  client.operator('POST', `/api-versions/${version}/deprecate`, body);
const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
const toldBy = (to: Receiver) =>
  to.received.filter(({ event }) => event.event === EVENT).map(({ event }) => event.data);

/** Sends one request for each kind of answer, each with the status that it has before the sunset. */
const askEverything = (
  client: Client,
  key: string,
  limitedKey: string,
  spin: object,
): Promise<[number, Answer][]> =>
  Promise.all(
    (
      [
        [200, client.partner('GET', '/version', key)],
        [200, client.spin(key, spin)],
        [200, client.request('GET', '/api/partner/v1/openapi.json')],
        [400, client.spin(key, {})],
        [401, client.partner('GET', '/version', 'ks_wrong')],
        [401, client.request('GET', '/api/partner/v1/version')],
        [404, client.partner('GET', '/nothing', key)],
        // The base path itself belongs to the API version too.
        [404, client.partner('GET', '', key)],
        [413, client.spin(key, 'x'.repeat(5000))],
        [429, beyondLimit(client, limitedKey)],
        [500, client.partner('GET', '/settlements', key)],
      ] as [number, Promise<Answer>][]
    ).map(async ([status, answer]): Promise<[number, Answer]> => [status, await answer]),
  );

/**
 * Sends requests until the limit of one a minute is exceeded. A new minute may begin between two requests.
 */
async function beyondLimit(client: Client, key: string): Promise<Answer> {
  let answer = await client.partner('GET', '/games', key);
  for (let asked = 1; asked < 4 && answer.status === 200; asked++)
    answer = await client.partner('GET', '/games', key);
  return answer;
}

const headersOf = ({ headers }: Answer) => ({
  deprecation: headers.get('Deprecation'),
  sunset: headers.get('Sunset'),
  link: headers.get('Link'),
});

test('announces the sunset of an API version in every answer of both front ends, and answers 410 after it', async () => {
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  const one = await service(constants({ apiNoticeDays: 0, authFailureLimit: 1_000_000 }), now);
  const two = await service(
    { ...constants({ apiNoticeDays: 0, authFailureLimit: 1_000_000 }), ROLES: 'http' },
    now,
  );
  const partner = await one.newPartner();
  const limited = await one.newPartner({ apiRateLimit: 1, spinRateLimit: 1 });
  const gameId = await one.newGame(partner.key, parSheet('classic-3-reel'));
  const spin = { gameId, playerId: 'p', wagerUsd: 0.25 };
  await books`ALTER TABLE settlement_reports RENAME TO away`;
  const askAll = (client: Client) => askEverything(client, partner.key, limited.key, spin);
  for (const client of [one, two]) {
    for (const [status, answer] of await askAll(client)) {
      expect(answer.status, answer.text).toBe(status);
      expect(answer.headers.get('Sunset')).toBeNull();
      expect(answer.headers.get('Deprecation')).toBeNull();
    }
  }
  const sunsetMs = Date.now() + HOUR_MS;
  const announced = await deprecate(one, {
    sunsetAt: new Date(sunsetMs).toISOString(),
    successor: 'v2',
    migrationUrl: 'https://example.com/move',
  });
  const announcedMs = Date.now();
  expect(announced).toMatchObject({
    status: 200,
    body: { version: 'v1', status: 'DEPRECATED', successor: 'v2' },
  });
  const says = async (client: Client): Promise<boolean> =>
    (await client.partner('GET', '/version', partner.key)).headers.has('Sunset');
  await until(async () => (await says(one)) && (await says(two)), 'both front ends say it');
  expectWithin(Date.now() - announcedMs, 1000);
  const expected = {
    deprecation: `@${Math.floor(Date.parse(String(announced.body.deprecatedAt)) / 1000)}`,
    sunset: new Date(sunsetMs).toUTCString(),
    link: '<https://example.com/move>; rel="deprecation"; type="text/html", </api/partner/v2>; rel="successor-version"',
  };
  for (const [status, answer] of (await Promise.all([askAll(one), askAll(two)])).flat()) {
    expect(answer.status, answer.text).toBe(status);
    expect(headersOf(answer)).toEqual(expected);
  }
  // The operator API is never deprecated.
  expect((await one.operator('GET', '/partners')).headers.get('Sunset')).toBeNull();

  const isGone = async (client: Client): Promise<boolean> =>
    (await client.partner('GET', '/version', partner.key)).status === 410;
  expect([await isGone(one), await isGone(two)]).toEqual([false, false]);
  aheadMs = sunsetMs - Date.now();
  expect([await isGone(one), await isGone(two)]).toEqual([true, true]);
  const [{ count: before } = { count: '' }] = await books<{ count: string }[]>`SELECT count(*) FROM ledger`;
  for (const [, answer] of (await Promise.all([askAll(one), askAll(two)])).flat()) {
    expect(answer).toMatchObject({ status: 410, body: { errorCode: 'KS-4113' } });
    expect(answer.body.message).toContain('v2');
    expect(headersOf(answer)).toEqual(expected);
    expect([...answer.headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
  }
  expect((await books`SELECT count(*) FROM ledger`)[0]!.count).toBe(before);
  expect((await one.operator('GET', '/partners')).status).toBe(200);
  await books`ALTER TABLE away RENAME TO settlement_reports`;
});

test('delivers the announcement of a sunset to every active webhook, even if the front end is killed at once', async () => {
  const [one, other, deleted] = await Promise.all([receiver(), receiver(), receiver()]);
  // The worker prepares the cells and then stops. Without a worker nothing is delivered, so at the end of the
  // process the announcement is committed but not sent.
  await (await startService(stores)).stop();
  const alone = await spawnService(
    environment(stores, { ...constants({ apiNoticeDays: 0 }), ROLES: 'http' }),
  );
  onTestFinished(() => void alone.end('SIGKILL'));
  const first = await alone.client.newPartner();
  const second = await alone.client.newPartner();
  await register(alone.client, first.key, one.url('/a'), ['spin.large_win']);
  await register(alone.client, first.key, one.url('/b'), ['block.low_reserve']);
  await register(alone.client, second.key, other.url(), ['api_key.expiring']);
  const { id } = await register(alone.client, second.key, deleted.url());
  await alone.client.partner('DELETE', `/webhooks/${id}`, second.key);
  const sunsetAt = inMs(60 * DAY_MS);
  const answer = await deprecate(alone.client, { sunsetAt, successor: 'v2' });
  expect(answer.status).toBe(200);
  expect(await alone.end('SIGKILL')).toBe('SIGKILL');
  expect(one.received).toEqual([]);
  const data = {
    version: 'v1',
    deprecatedAt: answer.body.deprecatedAt,
    sunsetAt,
    successor: 'v2',
    migrationUrl: null,
  };
  await service();
  await until(() => toldBy(one).length >= 2 && toldBy(other).length >= 1, 'all webhooks are told');
  await until(
    async () => (await books`SELECT 1 FROM deliveries WHERE status <> 'delivered'`).length === 0,
    'nothing is left to deliver',
  );
  expect(toldBy(one)).toEqual([data, data]);
  expect(one.received.map(({ path }) => path).sort()).toEqual(['/a', '/b']);
  expect(toldBy(other)).toEqual([data]);
  expect(deleted.received).toEqual([]);
});

test('announces a postponed sunset again, but no other changes; no webhook can subscribe to the event', async () => {
  const client = await service();
  const to = await receiver();
  const partner = await client.newPartner();
  const wanted = await client.partner('POST', '/webhooks', partner.key, { url: to.url(), events: [EVENT] });
  expect(wanted).toMatchObject({ status: 400, body: { errorCode: 'KS-4107' } });
  await register(client, partner.key, to.url());
  const [first, later] = [inMs(40 * DAY_MS), inMs(50 * DAY_MS)];
  const announced = await deprecate(client, { sunsetAt: first });
  await until(() => toldBy(to).length === 1, 'the announcement is told');
  const linked = await deprecate(client, { sunsetAt: first, migrationUrl: 'https://example.com/' });
  expect(linked.body).toEqual({ ...announced.body, migrationUrl: 'https://example.com/' });
  expect(await deprecate(client, { sunsetAt: inMs(30 * DAY_MS) })).toMatchObject({
    status: 400,
    body: { errorCode: 'KS-4101', details: [{ path: '/sunsetAt' }] },
  });
  expect((await deprecate(client, { sunsetAt: later })).status).toBe(200);
  await until(() => toldBy(to).length === 2, 'the move is told');
  expect(toldBy(to).map(({ sunsetAt }) => sunsetAt)).toEqual([first, later]);
  expect(toldBy(to)[1]!.migrationUrl).toBe('https://example.com/');
  const { body } = await client.operator<{ entries: { action: string }[] }>('GET', '/audit-log?limit=100');
  expect(body.entries.filter(({ action }) => action === 'api-version.deprecate')).toHaveLength(3);
});

test('sends one reminder 30, 7 and 1 days before a sunset, except for days before the announcement', async () => {
  const client = await service();
  const sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
  onTestFinished(() => sql.end());
  const partner = await client.newPartner();
  const to = await receiver();
  await register(client, partner.key, to.url());
  const sunsetMs = Date.now() + 20 * DAY_MS;
  await deprecate(client, { sunsetAt: new Date(sunsetMs).toISOString() });
  const remindedAt = (daysBefore: number) => remindOfSunsets(sql, new Date(sunsetMs - daysBefore * DAY_MS));
  // When the sunset was announced, the day 30 days before the sunset was already past.
  expect([await remindedAt(19), await remindedAt(7.1)]).toEqual([0, 0]);
  expect(await Promise.all([remindedAt(7), remindedAt(7), remindedAt(6.9)])).toEqual(
    expect.arrayContaining([1, 0, 0]),
  );
  expect([await remindedAt(1), await remindedAt(0.5), await remindedAt(0)]).toEqual([1, 0, 0]);
  // The sunset moves to 40 days from now, so all three reminder days are still to come.
  await deprecate(client, { sunsetAt: new Date(sunsetMs + 20 * DAY_MS).toISOString() });
  const movedAt = (daysBefore: number) => remindedAt(daysBefore - 20);
  expect([await movedAt(31), await movedAt(30), await movedAt(7), await movedAt(1)]).toEqual([0, 1, 1, 1]);
  await until(() => toldBy(to).length === 7, 'two announcements and five reminders arrive');
});

test("shows operators which partners still use an API version and how often, and which partners don't use it", async () => {
  const client = await service();
  const front = await startService(stores, { ROLES: 'http' });
  const [busy, quiet, silent] = [
    await client.newPartner(),
    await client.newPartner(),
    await client.newPartner(),
  ];
  for (let i = 0; i < 5; i++) await front.partner('GET', '/version', busy.key);
  // Partners are ordered by their last request with ms precision, so the requests must differ by at least 1
  // ms.
  const askedAt = Date.now();
  await until(() => Date.now() > askedAt, 'the clock goes on');
  await front.partner('GET', '/nothing', quiet.key);
  await front.partner('GET', '/version', `${silent.key}x`);
  // A front end writes its usage records when it stops.
  await front.stop();
  const { body } = await client.operator<{
    versions: { partners: { partnerId: number; requests24h: number }[] }[];
  }>('GET', '/api-versions');
  expect(body.versions).toMatchObject([
    {
      version: 'v1',
      status: 'ACTIVE',
      deprecatedAt: null,
      sunsetAt: null,
      partners: [
        { partnerId: quiet.partnerId, requests24h: 1 },
        { partnerId: busy.partnerId, requests24h: 5 },
      ],
    },
  ]);
  const metrics = await (await fetch(`http://127.0.0.1:${client.running.metricsPort}/metrics`)).text();
  expect(metrics).toMatch(/^spindle_api_requests_total\{version="v1",phase="last30days"\} 0$/m);
});

test('an invalid announcement of a sunset names its fault and changes nothing', async () => {
  // This front end has the notice period of production.
  const client = await startService(stores, { ROLES: 'http' });
  onTestFinished(() => client.stop());
  const sunsetAt = inMs(400 * DAY_MS);
  for (const [path, body] of [
    ['/sunsetAt', { sunsetAt: inMs(150 * DAY_MS) }],
    ['/deprecatedAt', { sunsetAt, deprecatedAt: inMs(-DAY_MS) }],
    ['/successor', { sunsetAt, successor: '2' }],
    ['/successor', { sunsetAt, successor: 'v1' }],
    // A URL must not end a line of the head, or the brackets of a Link.
    ['/migrationUrl', { sunsetAt, migrationUrl: 'https://example.com/\r\nX: 1' }],
    ['/migrationUrl', { sunsetAt, migrationUrl: 'https://example.com/>' }],
  ] as const)
    expect(await deprecate(client, body), path).toMatchObject({
      status: 400,
      body: { errorCode: 'KS-4101', details: [{ path }] },
    });
  const { body } = await client.operator<{ versions: object[] }>('GET', '/api-versions');
  expect(body.versions).toMatchObject([{ version: 'v1', status: 'ACTIVE', sunsetAt: null }]);
});
