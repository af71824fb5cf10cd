/** Errors that say how to go on: the wager, the right name of the idempotency key, the methods of a path, the local webhook. */
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

test('a wrong wager is told the right one', async () => {
  for (const wagerUsd of [1, 0.250000000000001]) {
    const message = 'must be 0.25, the wager of this game';
    expect(await spin({ wagerUsd })).toMatchObject(refused('KS-4103', '/wagerUsd', message));
  }
});

describe('the idempotency key of a spin', () => {
  test.each(['request_id', 'requestID', 'RequestId', 'request-id', 'idempotencyKey', 'idempotency_key'])(
    'is told its name where it is sent as %s',
    async (name) => {
      const message = expect.stringContaining('requestId');
      expect(await spin({ [name]: 'r' })).toMatchObject(refused('KS-4101', `/${name}`, message));
      // With a requestId it is a member like any that is not known.
      expect((await spin({ [name]: 'r', requestId: `with-${name}` })).status).toBe(200);
    },
  );

  test('may be in the header Idempotency-Key, as it is or in quotation marks', async () => {
    const first = await spin({}, 'header-1');
    expect(first).toMatchObject({ status: 200, body: { requestId: 'header-1' } });
    for (const repeated of [
      await spin({}, '"header-1"'),
      await spin({ requestId: 'header-1' }),
      await spin({ requestId: 'header-1' }, 'header-1'),
      // A body that is read by the slow way.
      await spin({ unknown: [1] }, 'header-1'),
    ]) {
      expect(repeated.text).toBe(first.text);
      expect(repeated.headers.get('Idempotent-Replayed')).toBe('true');
    }
  });

  test('is refused where the header differs from the body, or is none, and nothing is dealt', async () => {
    const differs = await spin({ requestId: 'a' }, 'b');
    expect(differs).toMatchObject(refused('KS-4101', '/requestId', expect.any(String)));
    for (const key of ['x'.repeat(129), 'ü', '""', '']) {
      expect(await spin({}, key)).toMatchObject(refused('KS-4101', '', expect.any(String)));
    }
    expect((await spin({ requestId: 'a' })).headers.get('Idempotent-Replayed')).toBeNull();
  });
});

/** Every route whose requests may be sent again, of all APIs. @returns names of operations, and where each is */
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

describe('on every route that takes one, the idempotency key', () => {
  interface Call {
    readonly path: string;
    readonly key: string;
    /** Without a requestId. */
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

  test('is tried here: none of the routes is left out', async () => {
    expect([...(await repeatable()).keys()].sort()).toEqual([...calls.keys()].sort());
  });

  test('is told its name where it is misspelt, and nothing is done', async () => {
    for (const [name, call] of calls)
      for (const wrong of ['request_id', 'requestID', 'idempotencyKey', 'idempotency-key']) {
        const answer = await send(call, { [wrong]: 'r' });
        const message = expect.stringContaining('requestId');
        expect([name, answer]).toMatchObject([name, refused('KS-4101', `/${wrong}`, message)]);
      }
  });

  test('may be in the header, and is done once', async () => {
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

  test('is refused where the header is another, or is none', async () => {
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

test('a table has 1 to 4 hands, and an action a number from 1 on', async () => {
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

test('a method that a path does not have is told those that it has', async () => {
  const ask = (method: string, path: string, key: string) =>
    service.request(method, `/api/${path}`, { key, ...(method === 'GET' ? {} : { body: {} }) });
  for (const [method, path, key, methods] of [
    ['DELETE', 'partner/v1/games', partner.key, 'GET and POST'],
    ['GET', 'partner/v1/spin', partner.key, 'POST'],
    ['PUT', 'partner/v1/webhooks/7', partner.key, 'PATCH and DELETE'],
    ['PUT', 'operator/v1/partners/1', OPERATOR_KEY, 'GET and PATCH'],
  ] as const) {
    const message = `This path takes ${methods}, not ${method}`;
    expect(await ask(method, path, key)).toMatchObject({ status: 404, ...refused('KS-4215', '', message) });
  }
  const { body } = await ask('GET', 'partner/v1/no-such-path', partner.key);
  expect(body).toMatchObject({ errorCode: 'KS-4215' });
  expect(body).not.toHaveProperty('details');
});

test('a webhook on this machine is told how the sandbox writes it', async () => {
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
