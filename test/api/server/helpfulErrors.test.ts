/**
 * Tests errors that name the next step: the right wager, the right name of the idempotency key, the methods
 * of a path, the path that was meant, the right header of a key, the legal actions of a round, the URL of a
 * local webhook.
 */
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { setUp } from '../../support/communal.js';
import { HTTP_SERVER } from '../../support/httpServer.js';
import { portOf, Wire } from '../../support/load.js';
import { raw } from '../../support/rawRequest.js';
import { isPlaying, newTable, type RoundAnswer } from '../../support/rounds.js';
import { parSheet } from '../../support/sheets.js';

const { service, partner } = world({ CELLS: '1' });
let gameId: number;

beforeAll(async () => {
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
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

  test('refuses a spin with two Idempotency-Key headers, but not one whose key has a comma', async () => {
    const text = JSON.stringify({ gameId, playerId: 'p', wagerUsd: 0.25 });
    const ask = (...keys: string[]) =>
      raw(
        service.base,
        [
          'POST /api/partner/v1/spin HTTP/1.1',
          `X-API-Key: ${partner.key}`,
          `Content-Length: ${text.length}`,
          ...keys.map((each) => `Idempotency-Key: ${each}`),
        ],
        text,
      );
    for (const keys of [
      ['k', 'k'],
      ['k', 'other'],
      ['', 'k'],
    ]) {
      const answer = await ask(...keys);
      expect([answer.status, answer.body]).toEqual([400, expect.stringContaining('must be sent only once')]);
    }
    const first = await ask('k, k');
    expect(first.status).toBe(200);
    expect((await ask('k, k')).headers.get('idempotent-replayed')).toBe('true');
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

describe('a request with a content coding', () => {
  const body = () => JSON.stringify({ gameId, playerId: 'coded', wagerUsd: 0.25 });
  const send = (path: string, coding: string, content: string | Uint8Array) =>
    service.request('POST', path, {
      key: partner.key,
      body: content,
      headers: { 'Content-Encoding': coding },
    });

  test.each(['/api/partner/v1/spin', '/api/partner/v1/webhooks', '/api/play/blackjack/deal'])(
    'names the content coding of a body that POST %s does not support',
    async (path) => {
      for (const [coding, content] of [
        ['gzip', gzipSync(body())],
        ['br', body()],
        ['x'.repeat(70), body()],
      ] as const) {
        const shown = coding.length > 64 ? `${coding.slice(0, 64)}…` : coding;
        const message = `The Content-Encoding «${shown}» is not supported. Send the body without compression`;
        expect(await send(path, coding, content)).toMatchObject({
          status: 400,
          ...refused('KS-4101', '', message),
        });
      }
      expect((await service.partner('GET', '/players/coded', partner.key)).status).toBe(404);
    },
  );

  test('accepts a body whose content coding is identity', async () => {
    expect((await send('/api/partner/v1/spin', 'Identity', body())).status).toBe(200);
  });
});

test.each([
  ['/api/partner/v1/spin', 4096],
  ['/api/partner/v1/webhooks', 65_536],
  ['/api/play/blackjack/deal', 4096],
])('POST %s names its limit for a longer body, and says that an empty body is empty', async (path, limit) => {
  const post = (content: string) => service.request('POST', path, { key: partner.key, body: content });
  const tooLong = `The body must have at most ${limit} bytes`;
  expect(await post(' '.repeat(limit + 1))).toMatchObject({
    status: 413,
    ...refused('KS-4101', '', tooLong),
  });
  const empty = 'The body is empty. Send a JSON object';
  for (const content of ['', ' \n'])
    expect(await post(content)).toMatchObject({ status: 400, ...refused('KS-4101', '', empty) });
});

test('names the path that exists in the error for a path with a small slip', async () => {
  for (const [method, path, meant] of [
    ['POST', '/spin', '/api/partner/v1/spin'],
    ['POST', '/v1/spin', '/api/partner/v1/spin'],
    ['POST', '/api/partner/spin', '/api/partner/v1/spin'],
    ['POST', '/api/partner/v1/spin/', '/api/partner/v1/spin'],
    ['GET', '/players/alice/spins', '/api/partner/v1/players/{playerId}/spins'],
    ['POST', '/api/play/deal', '/api/play/blackjack/deal'],
    ['GET', '/games', '/api/partner/v1/games or /api/operator/v1/games'],
    ['GET', '/healthz/', '/healthz'],
    ['POST', '/api/partner/v1/Spin', '/api/partner/v1/spin'],
    ['POST', '/v2/spin', '/api/partner/v1/spin'],
    ['POST', '/api/partner/v2/spin', '/api/partner/v1/spin'],
    ['GET', '/game', '/api/partner/v1/games or /api/operator/v1/games'],
    ['GET', '/api/partner/v1/game', '/api/partner/v1/games'],
    ['GET', '/api/partner/v1/player/alice/recal', '/api/partner/v1/players/{playerId}/recall'],
  ] as const) {
    const message = `This path does not exist. Send the request to ${meant}`;
    const answer = await service.request(method, path, { key: partner.key });
    expect([path, answer]).toMatchObject([path, { status: 404, ...refused('KS-4215', '', message) }]);
  }
  for (const path of ['/nothing', '/api/partner/v1/gaems', `/${'a/'.repeat(400)}spin/`]) {
    const { status, body } = await service.request('GET', path, { key: partner.key });
    expect([path, status, body.errorCode]).toEqual([path, 404, 'KS-4215']);
    expect(body).not.toHaveProperty('details');
  }
});

test('says that a key in the Authorization header belongs into X-API-Key, and does not repeat the key', async () => {
  const details = [
    {
      path: '',
      message: 'The key was sent in the wrong header, Authorization. Send it in X-API-Key, without «Bearer»',
    },
  ];
  for (const [path, key] of [
    ['/api/partner/v1/games', partner.key],
    ['/api/play/blackjack/rounds', partner.key],
    ['/api/operator/v1/partners', OPERATOR_KEY],
  ] as const) {
    const ask = (headers: Record<string, string>) => service.request('GET', path, { headers });
    const answer = await ask({ Authorization: `Bearer ${key}` });
    expect(answer).toMatchObject({ status: 401, body: { errorCode: 'KS-4001', details } });
    expect(answer.text).not.toContain(key);
    expect((await ask({ Authorization: 'Basic YTpi' })).body).not.toHaveProperty('details');
    // The right header counts, whatever else is sent.
    expect((await ask({ Authorization: 'Bearer x', 'X-API-Key': key })).status).toBe(200);
  }
});

test('gives an example of a valid date or time in the error for an invalid one', async () => {
  const DAY = 'must be a calendar day in the form YYYY-MM-DD, such as 2026-11-27';
  const TIME = 'must be an RFC 3339 time, such as 2026-11-27T08:30:00Z';
  for (const [path, code, at, message] of [
    ['/settlements/yesterday', 'KS-4105', '/date', DAY],
    ['/reports/games?interval=RANGE&from=2026-02-30&to=2026-03-01', 'KS-4105', '/from', DAY],
    ['/spins?from=2026-11-27', 'KS-4101', '/from', TIME],
  ] as const)
    expect(await service.partner('GET', path, partner.key)).toMatchObject(refused(code, at, message));
  const liability = await service.operator('GET', '/reports/liability?date=now');
  const past = 'must be a UTC day that is over, in the form YYYY-MM-DD, such as 2026-11-26';
  expect(liability).toMatchObject(refused('KS-4105', '/date', past));
  const events = await service.operator('GET', '/reports/events?to=now');
  expect(events).toMatchObject(refused('KS-4101', '/to', TIME));
  const key = await service.operator('POST', `/partners/${partner.partnerId}/keys`, { expiresAt: 'soon' });
  expect(key).toMatchObject(refused('KS-4101', '/expiresAt', TIME));
});

test('names the legal actions and the next action number in the error for a misplaced action of a round', async () => {
  const tableId = await newTable(service, partner.partnerId);
  const act = (roundId: string, action: string, seq: number) =>
    service.request('POST', '/api/play/blackjack/action', {
      key: partner.key,
      body: { roundId, action, seq },
    });
  const dealt = async (playerId: string) =>
    (
      await service.request<RoundAnswer>('POST', '/api/play/blackjack/deal', {
        key: partner.key,
        body: { gameId: tableId, playerId, wagerUsd: 0.25 },
      })
    ).body;
  let round = await dealt('misplaced-0');
  for (let i = 1; i < 40 && !isPlaying(round); i++) round = await dealt(`misplaced-${i}`);
  const legalActions = round.legalActions.map(({ action }) => action);
  const stale = await act(round.roundId, 'stand', 2);
  expect(stale).toMatchObject({
    status: 409,
    body: { errorCode: 'KS-4224', details: [{ path: '/seq', legalActions, expectedSeq: 1 }] },
  });
  const illegal = await act(round.roundId, 'insurance', 1);
  expect(illegal).toMatchObject({
    status: 409,
    body: { errorCode: 'KS-4223', details: [{ path: '/action', legalActions, expectedSeq: 1 }] },
  });
  expect((await act(round.roundId, 'stand', 1)).status).toBe(200);
  for (const [seq, errorCode] of [
    [2, 'KS-4223'],
    [3, 'KS-4224'],
  ] as const) {
    const { body } = await act(round.roundId, 'stand', seq);
    expect(body).toMatchObject({ errorCode, details: [{ legalActions: [] }] });
    expect((body.details as object[])[0]).not.toHaveProperty('expectedSeq');
  }
  const ended = await service.operator('POST', `/rounds/${round.roundId}/close?reason=r`);
  expect(ended).toMatchObject({ body: { errorCode: 'KS-4223', details: [{ legalActions: [] }] } });
});

test('answers OPTIONS without a key, and counts it neither as a failed authentication nor as a request', async () => {
  const options = (path: string, key?: string) =>
    service.request('OPTIONS', path, key === undefined ? {} : { key });
  for (const [path, allow] of [
    ['/api/partner/v1/spin', 'POST, OPTIONS'],
    ['/api/partner/v1/games', 'GET, HEAD, POST, OPTIONS'],
    ['/api/operator/v1/partners/1', 'GET, HEAD, PATCH, OPTIONS'],
    ['/healthz', 'GET, HEAD, OPTIONS'],
  ] as const) {
    const answer = await options(path);
    expect([answer.status, answer.text, answer.headers.get('Allow')]).toEqual([204, '', allow]);
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(answer.headers.get('X-RateLimit-Limit')).toBeNull();
  }
  expect(await options('/api/partner/v1/spin/')).toMatchObject({
    status: 404,
    body: { errorCode: 'KS-4215' },
  });
  const remaining = async () =>
    (await service.partner('GET', '/games', 'ks_wrong')).headers.get('X-RateLimit-Remaining');
  // A window may end between two counts, so the counts are repeated until both are in one window.
  let differences = [Number.NaN];
  for (let turn = 0; turn < 3 && differences[0] !== 1; turn++) {
    const before = Number(await remaining());
    for (let i = 0; i < 5; i++) await options('/api/partner/v1/games');
    differences = [before - Number(await remaining())];
  }
  expect(differences).toEqual([1]);
});

test('answers HTTP/1.0: node:http serves it, and uWebSockets.js says 505', async () => {
  const wire = await Wire.open(portOf(service.base));
  await wire.send('GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n');
  await wire.ended;
  const line = wire.unread.slice(0, wire.unread.indexOf('\r\n'));
  expect(line).toBe({ node: 'HTTP/1.1 200 OK', uws: 'HTTP/1.1 505 HTTP Version Not Supported' }[HTTP_SERVER]);
});
