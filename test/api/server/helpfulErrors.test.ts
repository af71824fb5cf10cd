/**
 * Tests errors that name the next step: the right wager, the right name of the idempotency key, the methods
 * of a path, the URL of a local webhook.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import { OPERATOR_KEY, type TestPartner } from '../../support/client.js';
import { setUp } from '../../support/communal.js';
import { newTable } from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';

let stores: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  stores = await freshStores();
  service = await startService(stores, { CELLS: '1' });
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});
afterAll(async () => {
  await service.stop();
  await stores.drop();
});

const spin = (more: object, key?: string) =>
  service.request<{ requestId?: string; spinId: string }>('POST', '/api/partner/v1/spin', {
    key: partner.key,
    body: { gameId, playerId: 'p', wagerUsd: 0.25, ...more },
    ...(key === undefined ? {} : { headers: { 'Idempotency-Key': key } }),
  });
const refused = (errorCode: string, path: string, message: unknown) => ({
  body: { errorCode, details: [{ path, message }] },
});

test('names the right wager in the error for a wrong wager', async () => {
  for (const wagerUsd of [1, 0.250000000000001]) {
    const message = 'must be 0.25, the wager of this game';
    expect(await spin({ wagerUsd })).toMatchObject(refused('KS-4103', '/wagerUsd', message));
  }
});

describe('the idempotency key of a spin', () => {
  test.each(['request_id', 'requestID', 'RequestId', 'request-id', 'idempotencyKey', 'idempotency_key'])(
    'names the member requestId in the error for a spin with the member %s instead',
    async (name) => {
      const message = expect.stringContaining('requestId');
      expect(await spin({ [name]: 'r' })).toMatchObject(refused('KS-4101', `/${name}`, message));
      // If the body also has a requestId, the misspelled member is ignored like any unknown member.
      expect((await spin({ [name]: 'r', requestId: `with-${name}` })).status).toBe(200);
    },
  );

  test('accepts the idempotency key of a spin in the Idempotency-Key header, with or without quotation marks', async () => {
    const first = await spin({}, 'header-1');
    expect(first).toMatchObject({ status: 200, body: { requestId: 'header-1' } });
    for (const repeated of [
      await spin({}, '"header-1"'),
      await spin({ requestId: 'header-1' }),
      await spin({ requestId: 'header-1' }, 'header-1'),
      // An unknown member makes the service parse this body on the slow path.
      await spin({ unknown: [1] }, 'header-1'),
    ]) {
      expect(repeated.text).toBe(first.text);
      expect(repeated.headers.get('Idempotent-Replayed')).toBe('true');
    }
  });

  test('refuses a spin whose Idempotency-Key header is invalid or differs from the body, and deals nothing', async () => {
    const differs = await spin({ requestId: 'a' }, 'b');
    expect(differs).toMatchObject(refused('KS-4101', '/requestId', expect.any(String)));
    for (const key of ['x'.repeat(129), 'ü', '""', '']) {
      expect(await spin({}, key)).toMatchObject(refused('KS-4101', '', expect.any(String)));
    }
    expect((await spin({ requestId: 'a' })).headers.get('Idempotent-Replayed')).toBeNull();
  });
});

/**
 * Finds every route of all APIs that accepts a requestId.
 * @returns the name of each operation with its method and path
 */
async function repeatable(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const base of ['/api/partner/v1', '/api/operator/v1', '/api/play/blackjack']) {
    type Body = { content: Record<string, { schema: { properties?: object } }> };
    type Operation = { operationId: string; requestBody?: Body };
    const { body } = await service.request<{ paths: Record<string, Record<string, Operation>> }>(
      'GET',
      `${base}/openapi.json`,
    );
    for (const [path, operations] of Object.entries(body.paths))
      for (const { operationId, requestBody } of Object.values(operations))
        if (JSON.stringify(requestBody ?? {}).includes('"requestId":')) found.set(operationId, base + path);
  }
  return found;
}

describe('the idempotency key of other routes', () => {
  interface Call {
    readonly path: string;
    readonly key: string;
    /** The request body without a requestId. */
    readonly body: object;
  }
  const calls = new Map<string, Call>();

  beforeAll(async () => {
    const { partnerId, key } = partner;
    const tableId = await newTable(service, partnerId);
    await setUp(service, gameId);
    const operator = '/api/operator/v1';
    const sum = { amountUsd: '1.00', reason: 'r' };
    const played = { playerId: 'q', wagerUsd: 0.25 };
    calls.set('spin', { path: '/api/partner/v1/spin', key, body: { gameId, ...played } });
    calls.set('dealRound', { path: '/api/play/blackjack/deal', key, body: { gameId: tableId, ...played } });
    calls.set('adjustBalance', {
      path: `${operator}/partners/${partnerId}/players/q/adjustments`,
      key: OPERATOR_KEY,
      body: { ...sum, amountUsd: 1 },
    });
    calls.set('fundCommunal', {
      path: `${operator}/games/${gameId}/communal/funding`,
      key: OPERATOR_KEY,
      body: sum,
    });
  });

  const send = ({ path, key, body }: Call, more: object, header?: string) =>
    service.request('POST', path, {
      key,
      body: { ...body, ...more },
      ...(header === undefined ? {} : { headers: { 'Idempotency-Key': header } }),
    });

  test('the tests of idempotency keys cover every route that accepts a requestId', async () => {
    expect([...(await repeatable()).keys()].sort()).toEqual([...calls.keys()].sort());
  });

  test('refuses a misspelled requestId on every route, names the right member, and changes nothing', async () => {
    for (const [name, call] of calls)
      for (const wrong of ['request_id', 'requestID', 'idempotencyKey', 'idempotency-key']) {
        const answer = await send(call, { [wrong]: 'r' });
        const message = expect.stringContaining('requestId');
        expect([name, answer]).toMatchObject([name, refused('KS-4101', `/${wrong}`, message)]);
      }
  });

  test('accepts the idempotency key in the header on every route, and executes the request once', async () => {
    for (const [name, call] of calls) {
      const first = await send(call, {}, `in the header of ${name}`);
      expect([200, 201], first.text).toContain(first.status);
      for (const again of [
        await send(call, {}, `"in the header of ${name}"`),
        await send(call, { requestId: `in the header of ${name}` }),
      ])
        expect([again.status, again.text]).toEqual([first.status, first.text]);
    }
  });

  test('refuses an invalid Idempotency-Key header, or one that differs from the body, on every route', async () => {
    for (const [name, call] of calls) {
      const differs = await send(call, { requestId: 'a' }, 'b');
      expect([name, differs]).toMatchObject([name, refused('KS-4101', '/requestId', expect.any(String))]);
      expect([name, await send(call, {}, 'x'.repeat(129))]).toMatchObject([
        name,
        refused('KS-4101', '', expect.any(String)),
      ]);
    }
  });
});

test('limits a blackjack table to 1 to 4 hands, and requires action numbers of 1 or more', async () => {
  for (const maxHands of [0, 5, 1.5]) {
    const body = { displayName: 'x', configName: 'HANDS', wagerUsd: 1, rules: { maxHands } };
    const answer = await service.operator('POST', `/partners/${partner.partnerId}/blackjack-games`, body);
    expect(answer).toMatchObject(refused('KS-4101', '/rules/maxHands', expect.any(String)));
  }
  for (const seq of [0, -1, 1.5]) {
    const body = { roundId: 'r', action: 'hit', seq };
    const answer = await service.request('POST', '/api/play/blackjack/action', { key: partner.key, body });
    expect(answer).toMatchObject(refused('KS-4101', '/seq', expect.any(String)));
  }
});

test('lists the methods that a path supports in the error for an unsupported method', async () => {
  const ask = (method: string, path: string, key: string) =>
    service.request(method, `/api/${path}`, { key, ...(method === 'GET' ? {} : { body: {} }) });
  for (const [method, path, key, methods] of [
    ['DELETE', 'partner/v1/games', partner.key, 'GET and POST'],
    ['GET', 'partner/v1/spin', partner.key, 'POST'],
    ['PUT', 'partner/v1/webhooks/7', partner.key, 'PATCH and DELETE'],
    ['PUT', 'operator/v1/partners/1', OPERATOR_KEY, 'GET and PATCH'],
  ] as const) {
    const message = `This path supports ${methods}, not ${method}`;
    expect(await ask(method, path, key)).toMatchObject({ status: 404, ...refused('KS-4215', '', message) });
  }
  const { body } = await ask('GET', 'partner/v1/no-such-path', partner.key);
  expect(body).toMatchObject({ errorCode: 'KS-4215' });
  expect(body).not.toHaveProperty('details');
});

test('explains in the error for a local webhook URL how the sandbox accepts it', async () => {
  const production = await service.newPartner({ environment: 'production' });
  const register = (url: string, key: string) =>
    service.partner('POST', '/webhooks', key, { url, events: ['spin.large_win'] });
  for (const url of ['http://127.0.0.1:9000/', 'https://127.0.0.1/', 'http://[::1]:9000/']) {
    const hint = 'must lead to a public address; in the sandbox write this machine as http://localhost';
    expect(await register(url, partner.key)).toMatchObject(refused('KS-4217', '/url', hint));
    const plain = 'must lead to a public address';
    expect(await register(url, production.key)).toMatchObject(refused('KS-4217', '/url', plain));
  }
});
