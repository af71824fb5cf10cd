/** The preview of version 2: the same handlers with amounts as decimal text and cursors (docs/contract.md §16.1). */
import { Ajv2020, type AnySchema } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import type { Answer, TestPartner } from '../support/client.js';
import { RULES } from '../support/communal.js';
import { isSigned, startReceiver } from '../support/receiver.js';
import { rawRedis } from '../support/redis.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

let stores: TestStores;
let client: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  stores = await freshStores();
  client = await startService(stores, { API_PREVIEW: 'v2', API_NOTICE_DAYS: '0' });
  partner = await client.newPartner({ largeWinThresholdUsd: 1_000_000 });
  gameId = await client.newGame(partner.key, parSheet('penny-sub-cent'));
});
afterAll(async () => {
  await client.stop();
  await stores.drop();
});

const v2 = <T = Record<string, never>>(method: string, path: string, body?: unknown): Promise<Answer<T>> =>
  client.request<T>(method, `/api/partner/v2${path}`, { key: partner.key, body });

/** What is wrong with the amounts of an answer: members in `Usd` that are no decimal text. */
function numbersIn(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name.endsWith('Usd') && member !== null && !/^-?\d+(\.\d+)?$/.test(String(member as string))
      ? [`${path}/${name}`]
      : name.endsWith('Usd') && typeof member === 'number'
        ? [`${path}/${name}`]
        : numbersIn(member, `${path}/${name}`),
  );
}

/** The lists of communal progressives have what is booked. */
async function allBooked(): Promise<void> {
  const redis = rawRedis(stores.redisUrl);
  const outboxes = await redis.keys('{c*}:outbox');
  const isEmpty = async (): Promise<boolean> =>
    (await Promise.all(outboxes.map((key) => redis.xlen(key)))).every((length) => length === 0);
  await until(isEmpty, 'all is booked');
  redis.disconnect();
}

const wagerOf = async (): Promise<string> =>
  (await v2<{ games: { minWagerUsd: string }[] }>('GET', '/games')).body.games[0]!.minWagerUsd;

test('a spin takes and tells decimal texts, and is the same spin in both versions', async () => {
  const spin = {
    gameId,
    playerId: 'p "wagerUsd":1,',
    wagerUsd: await wagerOf(),
    requestId: 'r "balanceUsd":5}',
  };
  const made = await v2<{ spinId: string; balance: { balanceUsd: string }; requestId: string }>(
    'POST',
    '/spin',
    spin,
  );
  expect(made.status, made.text).toBe(200);
  expect(typeof made.body.balance.balanceUsd).toBe('string');
  expect(made.body.requestId).toBe(spin.requestId);
  expect(numbersIn(made.body)).toEqual([]);
  const again = await v2('POST', '/spin', spin);
  expect([again.text, again.headers.get('Idempotent-Replayed')]).toEqual([made.text, 'true']);
  const old = await client.spin<{ balance: { balanceUsd: number } }>(partner.key, {
    ...spin,
    wagerUsd: Number(spin.wagerUsd),
  });
  expect(old.headers.get('Idempotent-Replayed')).toBe('true');
  expect(old.body.balance.balanceUsd).toBe(Number(made.body.balance.balanceUsd));
  const read = await v2<{ playerId: string }>('GET', `/spins/${made.body.spinId}`);
  expect(read.body).toMatchObject({ ...made.body, playerId: spin.playerId });
});

test('a number, a text that is none and bad JSON are refused, with what is wrong', async () => {
  const spin = { gameId, playerId: 'p', wagerUsd: await wagerOf() };
  for (const [wagerUsd, path] of [
    [Number(spin.wagerUsd), '/wagerUsd'],
    ['0x1', '/wagerUsd'],
    ['1e3', '/wagerUsd'],
    ['', '/wagerUsd'],
    [null, '/wagerUsd'],
  ]) {
    const answer = await v2<{ errorCode: string; details: { path: string; message: string }[] }>(
      'POST',
      '/spin',
      {
        ...spin,
        wagerUsd,
      },
    );
    expect(answer).toMatchObject({ status: 400, body: { errorCode: 'KS-4101', details: [{ path }] } });
    expect(answer.body.details[0]!.message).toBe('must be a decimal number as a string');
  }
  expect((await v2('POST', '/spin', '{')).body.errorCode).toBe('KS-4101');
  expect((await v2('POST', '/spin', Buffer.from([0x7b, 0xff, 0x7d]))).body.errorCode).toBe('KS-4101');
  expect((await v2('POST', '/spin', { ...spin, wagerUsd: '1000' })).body.errorCode).toBe('KS-4103');
  const registered = { parSheetId: 1, displayName: 'G', configName: 'G2', minWagerUsd: '7.5' };
  expect((await v2('POST', '/games', registered)).body.errorCode).toBe('KS-4103');
  const sheet = parSheet('classic-3-reel') as { denominationUsd: number };
  expect((await v2('POST', '/par-sheets', sheet)).body.errorCode).toBe('KS-4104');
  const text = { ...sheet, denominationUsd: String(sheet.denominationUsd) };
  expect((await v2('POST', '/par-sheets', text)).status).toBe(201);
});

test('lists have a cursor: nothing is skipped or repeated while they grow', async () => {
  const spin = { gameId, playerId: 'lists', wagerUsd: await wagerOf() };
  for (let i = 0; i < 25; i++) expect((await v2('POST', '/spin', spin)).status).toBe(200);
  const { body: all } = await client.partner<{ spins: { spinId: string }[] }>(
    'GET',
    '/players/lists/spins?limit=100',
    partner.key,
  );
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const page: Answer<{ spins: { spinId: string }[]; nextCursor: string | null }> = await v2(
      'GET',
      `/players/lists/spins?limit=7${query}`,
    );
    expect(Object.keys(page.body)).toEqual(['spins', 'nextCursor']);
    expect(numbersIn(page.body)).toEqual([]);
    seen.push(...page.body.spins.map(({ spinId }) => spinId));
    cursor = page.body.nextCursor;
    // A new one comes before all of them.
    expect((await v2('POST', '/spin', spin)).status).toBe(200);
  }
  expect(seen).toEqual(all.spins.map(({ spinId }) => spinId));
  for (const path of ['/players/lists/spins', '/settlements']) {
    expect((await v2('GET', `${path}?cursor=2026-02-30`)).body.errorCode).toBe('KS-4101');
    expect((await v2('GET', `${path}?limit=0`)).body.errorCode).toBe('KS-4101');
  }
  expect((await v2('GET', '/settlements')).body).toEqual({ reports: [], nextCursor: null });
});

test('lists of communal progressives have a cursor, too, and take no other', async () => {
  const path = `/games/${gameId}/communal`;
  const tiers = [{ ...RULES.tiers[0], triggerAtSpins: 10, amountUsd: '1.00' }];
  expect((await client.operator('PUT', path, { ...RULES, tiers })).status).toBe(200);
  const funding = { amountUsd: '100.00', reason: 'preview', requestId: 'first' };
  expect((await client.operator('POST', `${path}/funding`, funding)).status).toBe(200);
  const spin = { gameId, playerId: 'bonus', wagerUsd: await wagerOf() };
  const events = async (): Promise<number> =>
    (await client.partner<{ total: number }>('GET', `${path}/events`, partner.key)).body.total;
  for (let i = 0; i < 50; i++) expect((await v2('POST', '/spin', spin)).status).toBe(200);
  await until(async () => (await events()) === 5, 'five events are booked');
  for (const [list, of, idOf] of [
    ['events', `${path}/events`, 'eventId'],
    ['bonuses', '/players/bonus/community-bonuses', 'eventId'],
  ] as const) {
    type Page = Record<string, Record<string, string>[]> & { nextCursor: string | null };
    await allBooked();
    const whole = await client.partner<Page>('GET', `${of}?limit=100`, partner.key);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? '' : `&cursor=${cursor}`;
      const page: Answer<Page> = await v2<Page>('GET', `${of}?limit=2${query}`);
      expect(Object.keys(page.body), page.text).toEqual([list, 'nextCursor']);
      seen.push(...page.body[list]!.map((each) => each[idOf]!));
      cursor = page.body.nextCursor;
      for (let i = 0; i < 10; i++) await v2('POST', '/spin', spin);
    } while (cursor !== null);
    expect(seen).toEqual(whole.body[list]!.map((each) => each[idOf]!));
    for (const wrong of ['x', '0123456789abcdef0123456789abcdef'])
      expect((await v2('GET', `${of}?cursor=${wrong}`)).body.errorCode).toBe('KS-4101');
  }
});

test('a webhook gets deliveries of the version that it was registered with', async () => {
  const to = await startReceiver();
  onTestFinished(() => to.close());
  const body = (path: string) => ({ url: to.url(path), events: ['spin.large_win'] });
  const { body: newer } = await v2<{ id: number; secret: string }>('POST', '/webhooks', body('/v2'));
  const older = await client.partner<{ id: number; secret: string }>(
    'POST',
    '/webhooks',
    partner.key,
    body('/v1'),
  );
  await v2('POST', `/webhooks/${newer.id}/test`, { event: 'spin.large_win' });
  await client.partner('POST', `/webhooks/${older.body.id}/test`, partner.key, { event: 'spin.large_win' });
  await until(() => to.received.length === 2, 'both are delivered');
  const of = (path: string) => to.received.find((request) => request.path === path)!;
  expect([of('/v2').event.data.payoutUsd, of('/v1').event.data.payoutUsd]).toEqual(['125.5', 125.5]);
  expect([isSigned(of('/v2'), newer.secret), isSigned(of('/v1'), older.body.secret)]).toEqual([true, true]);
  const deliveries = await v2<{ deliveries: object[]; nextCursor: null }>(
    'GET',
    `/webhooks/${newer.id}/deliveries`,
  );
  expect(deliveries.body).toMatchObject({ deliveries: [{ event: 'spin.large_win' }], nextCursor: null });
  expect((await v2('GET', `/webhooks/${newer.id}/deliveries?cursor=dlv_1`)).body.errorCode).toBe('KS-4101');
});

test('it has a document of its own that its answers fit, a version, and no path that is not there', async () => {
  const { body: document } = await client.request<{
    servers: object[];
    paths: Record<
      string,
      Record<string, { responses: Record<string, { content: Record<string, { schema: AnySchema }> }> }>
    >;
    components: object;
  }>('GET', '/api/partner/v2/openapi.json');
  expect(document.servers).toEqual([{ url: '/api/partner/v2' }]);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ components: document.components } as AnySchema, 'v2');
  for (const path of ['/games', '/spins', '/players/{playerId}', '/players/{playerId}/spins']) {
    const { schema } = document.paths[path]!.get!.responses['200']!.content['application/json']!;
    const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"v2#')));
    const { body } = await v2('GET', path.replace('{playerId}', 'lists'));
    expect(numbersIn(body)).toEqual([]);
    expect(validate(body), JSON.stringify(validate.errors)).toBe(true);
  }
  expect((await v2('GET', '/version')).body).toMatchObject({ version: '2.0.0-preview', apiVersion: 'v2' });
  expect((await v2('GET', '/nothing')).body.errorCode).toBe('KS-4215');
  expect((await client.request('GET', '/api/partner/v2/games')).body.errorCode).toBe('KS-4001');
});

test('the end of version 1 leaves it alone; without the setting it is not there', async () => {
  const plain = await startService(stores, { ROLES: 'http' });
  onTestFinished(() => plain.stop());
  expect((await plain.request('GET', '/api/partner/v2/version', { key: partner.key })).status).toBe(404);
  // Later than the service reads it, also on a machine that is busy.
  const sunsetAt = new Date(Date.now() + 3000).toISOString();
  const announced = await client.operator('POST', '/api-versions/v1/deprecate', {
    sunsetAt,
    successor: 'v2',
  });
  expect(announced.status, announced.text).toBe(200);
  const isGone = async () => (await client.partner('GET', '/version', partner.key)).status === 410;
  await until(isGone, 'version 1 has ended');
  const answer = await v2('GET', '/version');
  expect([answer.status, answer.headers.get('Sunset')]).toEqual([200, null]);
});
