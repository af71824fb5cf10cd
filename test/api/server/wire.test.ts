import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { HTTP_SERVER } from '../../support/httpServer.js';
import { plainRequest, portOf, SPIN_PATH, spinRequest, Wire } from '../../support/load.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const BASE = '/api/partner/v1';

/** Differences between the two HTTP servers. docs/production.md has the same table. */
const EXPECTED = {
  uws: {
    http10: 505,
    noHttp: 505,
    lowerCaseMethod: 404,
    unknownMethod: 404,
    pipelinedSpinsAnswered: 0,
    refusedHead: [431],
  },
  node: {
    http10: 200,
    noHttp: 400,
    lowerCaseMethod: 400,
    unknownMethod: 400,
    pipelinedSpinsAnswered: 3,
    refusedHead: [200, 431],
  },
}[HTTP_SERVER];

const { service, redis, partner } = world({ CELLS: '1' });
let gameId: number;
let port: number;
const wires: Wire[] = [];

beforeAll(async () => {
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  port = portOf(service.base);
});

afterAll(async () => {
  for (const wire of wires) wire.close();
});

async function open(): Promise<Wire> {
  const wire = await Wire.open(port);
  wires.push(wire);
  return wire;
}

const body = (playerId: string, more: object = {}) =>
  JSON.stringify({ gameId, playerId, wagerUsd: 0.25, ...more });
const spin = (playerId: string, more: object = {}) => spinRequest(partner.key, body(playerId, more));
const health = () => plainRequest('GET', '/healthz', partner.key);
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
/** Builds the head of a spin request with these framing headers. */
const head = (lines: string, path = SPIN_PATH) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${partner.key}\r\n${lines}\r\n\r\n`;
const codeOf = (text: string) => (JSON.parse(text) as { errorCode?: string }).errorCode;

/** Number of outcomes dealt so far. */
async function dealt(): Promise<number> {
  const record = await redis.hgetBuffer('{c0}:games', String(gameId));
  return record!.readUIntLE(0, 6);
}

async function openRequests(): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${service.running.metricsPort}/metrics`)).text();
  return Number(/^spindle_http_open_requests(?:\{.*\})? (\S+)$/m.exec(text)?.[1]);
}

/**
 * Waits until a new connection is served and no other request is open, so that the service has handled
 * everything sent before.
 */
async function served(): Promise<void> {
  expect((await (await open()).ask(health())).status).toBe(200);
  await until(async () => (await openRequests()) === 0, 'no request is open');
}

/** Sends bytes that no server may accept. The connection must end, and nothing may have been dealt. */
async function refused(bytes: string | Buffer): Promise<string> {
  const before = await dealt();
  const wire = await open();
  await wire.send(bytes);
  await wire.ended;
  await served();
  expect(await dealt()).toBe(before);
  return wire.unread;
}

describe('bodies that are cut short', () => {
  test.each(['finish', 'reset'] as const)(
    "deals no spin and leaves no request open if a spin's body is cut short (%s)",
    async (how) => {
      const before = await dealt();
      const whole = spin('cut');
      for (const bytes of [1, 30, whole.length - 100, whole.length - 1]) {
        const wire = await open();
        await wire.send(whole.subarray(0, bytes));
        wire[how]();
        await wire.ended;
      }
      const chunked = await open();
      await chunked.send(head('Transfer-Encoding: chunked') + chunk(body('cut')));
      chunked[how]();
      await chunked.ended;
      await served();
      expect(await dealt()).toBe(before);
    },
  );

  test('counts a request as open until its client disconnects', async () => {
    const wire = await open();
    await wire.send(spin('open').subarray(0, -1));
    await until(async () => (await openRequests()) === 1, 'the request is open');
    wire.reset();
    await until(async () => (await openRequests()) === 0, 'it is not open any more');
  });
});

describe('bodies that arrive in pieces', () => {
  test('reads a spin that arrives byte by byte as one request', async () => {
    const before = await dealt();
    const wire = await open();
    const answer = wire.answer();
    const whole = spin('bytes');
    const lineEnd = whole.indexOf('\r\n') + 2;
    await wire.send(whole.subarray(0, lineEnd));
    for (const byte of whole.subarray(lineEnd)) await wire.send(Buffer.of(byte));
    expect((await answer).status).toBe(200);
    expect(await dealt()).toBe(before + 1);
  });

  test('reads a body in chunks of any size as one request, and keeps the connection open', async () => {
    const wire = await open();
    const text = body('chunks €');
    const first = wire.answer();
    await wire.send(head('Transfer-Encoding: chunked'));
    for (const character of text) await wire.send(chunk(character));
    await wire.send('0\r\n\r\n');
    expect((await first).status).toBe(200);
    const second = await wire.ask(`${head('Transfer-Encoding: Chunked') + chunk(text)}0\r\n\r\n`);
    expect(second.status).toBe(200);
    expect((await wire.ask(spin('chunks'))).status).toBe(200);
  });

  test.each(['100-continue', '100-Continue', '100-CONTINUE '])(
    'answers 100 Continue to a client that waits for it (%s)',
    async (expectation) => {
      const wire = await open();
      for (const [text, status] of [
        [body('continue'), 200],
        ['{}', 400],
        [body('continue'), 200],
      ] as const) {
        const whole = spinRequest(partner.key, text, `Expect: ${expectation}\r\n`);
        const headEnd = whole.indexOf('\r\n\r\n') + 4;
        expect((await wire.ask(whole.subarray(0, headEnd))).status).toBe(100);
        const answer = await wire.ask(whole.subarray(headEnd));
        expect([answer.status, answer.headers.get('content-type')]).toEqual([status, 'application/json']);
      }
      expect((await wire.ask(spin('continue'))).status).toBe(200);
    },
  );

  test('refuses an Expect header other than 100-continue at once with 417, and deals nothing', async () => {
    for (const expectation of ['200-ok', '100-continue, x', '100-continue\r\nExpect: x']) {
      const rest = await refused(spinRequest(partner.key, body('expects'), `Expect: ${expectation}\r\n`));
      expect(rest).toMatch(/HTTP\/1\.1 417 /);
    }
  });
});

describe('bodies over the size limit', () => {
  const limits = [
    ['/spin', 4096],
    ['/par-sheets', 10_240],
    ['/games', 65_536],
  ] as const;

  test.each(limits)(
    'POST %s: reads a body of %i bytes, and answers 413 to a body that is one byte longer, chunked or not',
    async (path, limit) => {
      const wire = await open();
      for (const [length, status] of [
        [limit, 400],
        [limit + 1, 413],
        [200_000, 413],
      ] as const) {
        const text = 'x'.repeat(length);
        for (const bytes of [
          head(`Content-Length: ${length}`, BASE + path) + text,
          `${head('Transfer-Encoding: chunked', BASE + path) + chunk(text)}0\r\n\r\n`,
        ]) {
          const answer = await wire.ask(bytes);
          expect([length, answer.status, codeOf(answer.text)]).toEqual([length, status, 'KS-4101']);
        }
      }
      expect((await wire.ask(health())).status).toBe(200);
    },
  );

  test.each(limits)(
    'POST %s: the client can read the answer to a far too long body before the service ends the connection',
    async (path) => {
      for (const lines of ['Content-Length: 8000000', 'Transfer-Encoding: chunked']) {
        const wire = await open();
        const answer = wire.answer();
        await wire.send(head(lines, BASE + path));
        const piece = lines.startsWith('T') ? chunk('x'.repeat(65_536)) : 'x'.repeat(65_536);
        for (let sent = 0; sent < 100 && !wire.hasEnded; sent++) await wire.send(piece);
        const { status, text } = await answer;
        expect([status, codeOf(text)]).toEqual([413, 'KS-4101']);
        await wire.ended;
      }
      await served();
    },
  );

  test.each([
    ['POST', '/spin'],
    ['POST', '/games'],
    ['POST', '/nothing'],
    ['GET', '/games'],
    ['DELETE', '/spin'],
    ['HEAD', '/games'],
  ])('closes the connection of an endless upload to %s %s', async (method, path) => {
    const wire = await open();
    await wire.send(head('Transfer-Encoding: chunked', BASE + path).replace('POST', method));
    const piece = chunk('x'.repeat(65_536));
    for (let sent = 0; sent < 10_000 && !wire.hasEnded; sent++) await wire.send(piece);
    expect(wire.hasEnded).toBe(true);
    await served();
  });

  test("ignores a body that a route doesn't expect, and keeps the connection open", async () => {
    const wire = await open();
    const bytes = head('Content-Length: 5', `${BASE}/games`).replace('POST', 'GET');
    expect((await wire.ask(`${bytes}hello`)).status).toBe(200);
    expect((await wire.ask(spin('after'))).status).toBe(200);
  });
});

describe('ambiguous framing', () => {
  const smuggled = () => spin('smuggled').toString('latin1');
  const lengthOf = () => body('first').length;

  test.each([
    ['two equal lengths', () => `Content-Length: ${lengthOf()}\r\nContent-Length: ${lengthOf()}`],
    ['two lengths', () => `Content-Length: ${lengthOf()}\r\nContent-Length: 4`],
    ['two lengths, the other way', () => `Content-Length: 4\r\nContent-Length: ${lengthOf()}`],
    ['a length and chunks', () => `Content-Length: ${lengthOf()}\r\nTransfer-Encoding: chunked`],
    ['chunks and a length', () => `Transfer-Encoding: chunked\r\nContent-Length: ${lengthOf()}`],
    ['chunks twice', () => 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'],
    ['another coding', () => 'Transfer-Encoding: gzip'],
    ['a list of codings', () => 'Transfer-Encoding: gzip, chunked'],
    ['a coding that is nearly chunked', () => 'Transfer-Encoding: xchunked'],
    ['two hosts', () => `Host: other\r\nContent-Length: ${lengthOf()}`],
    ['two equal hosts', () => `Host: localhost\r\nContent-Length: ${lengthOf()}`],
    ['a length that is no number', () => 'Content-Length: 1e1'],
    ['a length below zero', () => 'Content-Length: -1'],
    ['a length with a sign', () => 'Content-Length: +5'],
    ['a length in a list', () => 'Content-Length: 5, 5'],
    ['a length beyond any', () => 'Content-Length: 99999999999999999999999'],
  ])(
    'refuses a spin with %s, and any request hidden behind it, and closes the connection',
    async (_what, lines) => {
      const first = body('first');
      for (const content of [first, `${chunk(first)}0\r\n\r\n`, '0\r\n\r\n']) {
        const rest = await refused(head(lines()) + content + smuggled());
        expect(rest).not.toContain('spinId');
      }
    },
  );

  test.each([
    ['a size that is no number', 'zz\r\nhello\r\n0\r\n\r\n'],
    ['a size below zero', '-5\r\nhello\r\n0\r\n\r\n'],
    ['a size beyond any', 'fffffffffffffffffffff\r\nhello\r\n0\r\n\r\n'],
  ])(
    'closes the connection of a chunked body with %s, and serves no request behind it',
    async (_what, content) => {
      await refused(head('Transfer-Encoding: chunked') + content + smuggled());
    },
  );
});

describe('requests on one connection', () => {
  test('answers pipelined requests in their order', async () => {
    const wire = await open();
    const asked = ['/healthz', '/nowhere', '/healthz', '/nowhere', '/nowhere', '/healthz'];
    await wire.send(asked.map((path) => plainRequest('GET', path, partner.key)).join(''));
    for (const path of asked) expect((await wire.answer()).status).toBe(path === '/healthz' ? 200 : 404);
  });

  test('answers a refused head only once', async () => {
    const wire = await open();
    await wire.send(
      `${plainRequest('GET', '/healthz', partner.key)}GET /healthz HTTP/1.1\r\nHost: x\r\n${'X-Many: y\r\n'.repeat(150)}\r\n`,
    );
    const statuses: number[] = [];
    for (;;) {
      const answer = await wire.answer().catch(() => undefined);
      if (answer === undefined) break;
      statuses.push(answer.status);
    }
    // uWebSockets.js closes the connection at once, before the first request is answered.
    expect(statuses).toEqual(EXPECTED.refusedHead);
    await wire.ended;
  });

  test('never answers a pipelined spin with the outcome of another spin; if it closes the connection, a retry is safe', async () => {
    const before = await dealt();
    const ids = ['pipe-1', 'pipe-2', 'pipe-3'];
    const wire = await open();
    await wire.send(Buffer.concat(ids.map((requestId) => spin(requestId, { requestId }))));
    const read: string[] = [];
    while (read.length < ids.length) {
      const answer = await wire.answer().catch(() => undefined);
      if (answer === undefined) break;
      read.push((JSON.parse(answer.text) as { requestId: string }).requestId);
    }
    expect(read).toEqual(ids.slice(0, EXPECTED.pipelinedSpinsAnswered));
    await served();
    // node:http deals all spins in turn. uWebSockets.js deals none, because it closes the connection before
    // the first spin is sent to Redis.
    expect(await dealt()).toBe(before + EXPECTED.pipelinedSpinsAnswered);
    const again = await open();
    for (const requestId of ids) {
      const answer = await again.ask(spin(requestId, { requestId }));
      expect([answer.status, (JSON.parse(answer.text) as { requestId: string }).requestId]).toEqual([
        200,
        requestId,
      ]);
    }
    expect(await dealt()).toBe(before + ids.length);
  });

  test('keeps the connection usable after a HEAD request, whose answer has no body', async () => {
    const wire = await open();
    for (const [path, status] of [
      ['/healthz', 200],
      [`${BASE}/games`, 200],
      ['/nowhere', 404],
    ] as const) {
      const answer = await wire.ask(plainRequest('HEAD', path, partner.key), true);
      expect([answer.status, answer.head.match(/content-length/gi)?.length]).toEqual([status, 1]);
      expect((await wire.ask(health())).text).toBe('{"status":"ok"}');
    }
  });

  test("after a client closes its sending side, node:http answers its open spin and uWebSockets.js doesn't deal it", async () => {
    const before = await dealt();
    const [first, last] = [await open(), await open()];
    await redis.call('CLIENT', 'PAUSE', '60000', 'WRITE');
    try {
      // The first call to Redis is blocked, so the next spin waits in the queue.
      const answer = first.ask(spin('first'));
      await until(async () => (await openRequests()) === 1, 'the first spin is under way');
      const answerOfLast = last.answer().catch(() => undefined);
      await last.send(spin('last'));
      last.finish();
      if (HTTP_SERVER === 'uws') await last.ended;
      else await until(async () => (await openRequests()) === 2, 'the last spin is under way');
      await redis.call('CLIENT', 'UNPAUSE');
      expect((await answer).status).toBe(200);
      expect((await answerOfLast)?.status).toBe(HTTP_SERVER === 'uws' ? undefined : 200);
      await last.ended;
      await served();
      expect(await dealt()).toBe(before + (HTTP_SERVER === 'uws' ? 1 : 2));
    } finally {
      await redis.call('CLIENT', 'UNPAUSE');
    }
  });

  test('closes the connection if the client sends Connection: close', async () => {
    const wire = await open();
    const answer = await wire.ask(spinRequest(partner.key, body('close'), 'Connection: close\r\n'));
    expect(answer.status).toBe(200);
    await wire.ended;
  });
});

describe('malformed request heads', () => {
  test.each([
    ['HTTP/1.0', 'GET /healthz HTTP/1.0\r\n\r\n', EXPECTED.http10],
    ['no HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc', EXPECTED.noHttp],
    ['no Host', 'GET /healthz HTTP/1.1\r\nX-Other: y\r\n\r\n', 400],
    ['a header of 60 KB', `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Big: ${'a'.repeat(60_000)}\r\n\r\n`, 431],
    ['500 headers', `GET /healthz HTTP/1.1\r\nHost: x\r\n${'X-Many: y\r\n'.repeat(500)}\r\n`, 431],
    ['a path of 60 KB', `GET /${'a'.repeat(60_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431],
  ])('answers a request head with %s and closes the connection', async (_what, bytes, status) => {
    const wire = await open();
    expect((await wire.ask(bytes)).status).toBe(status);
    await wire.ended;
    await served();
  });

  test('serves a head of 7 KB, and answers one of 9 KB with 431', async () => {
    const headOf = (bytes: number) =>
      `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Big: ${'a'.repeat(bytes)}\r\n\r\n`;
    expect((await (await open()).ask(headOf(7000))).status).toBe(200);
    const refused = await (await open()).ask(headOf(9000));
    expect(refused.status).toBe(431);
    // uWebSockets.js answers before the service sees the request, with an HTML page.
    if (HTTP_SERVER === 'node')
      expect(JSON.parse(refused.text)).toMatchObject({ errorCode: 'KS-4101', details: { length: 1 } });
  });

  test('closes the connection of a request without any header', async () => {
    const wire = await open();
    await wire.send('GET /healthz HTTP/1.1\r\n\r\n');
    await wire.ended;
  });

  test.each([
    ['TRACE', 404],
    ['get', EXPECTED.lowerCaseMethod],
    ['Get', EXPECTED.lowerCaseMethod],
    ['FOO', EXPECTED.unknownMethod],
  ])('answers the method %s with an error, because no route has it', async (method, status) => {
    const wire = await open();
    expect((await wire.ask(plainRequest(method, '/healthz', partner.key))).status).toBe(status);
  });

  test('deals no spin for a method in lower case', async () => {
    const before = await dealt();
    const wire = await open();
    const answer = await wire.ask(spin('case').toString().replace('POST', 'post'));
    expect(answer.status).toBe(EXPECTED.lowerCaseMethod);
    await served();
    expect(await dealt()).toBe(before);
  });
});

describe('paths with percent-encoding', () => {
  test.each([
    ['%E2%82%AC', 200],
    ['%e2%82%ac', 200],
    ['%2F', 404],
    ['%2f..%2f', 404],
    ['%25', 404],
    ['%00', 404],
    ['..', 404],
    ['%ZZ', 400],
    ['%', 400],
    ['%C0%80', 400],
    ['%ED%A0%80', 400],
    ['%E2%82', 400],
  ])('reads /players/%s as percent-encoded UTF-8', async (part, status) => {
    const wire = await open();
    expect((await wire.ask(spin('€'))).status).toBe(200);
    const answer = await wire.ask(plainRequest('GET', `${BASE}/players/${part}`, partner.key));
    expect(answer.status).toBe(status);
    if (status === 400) expect(codeOf(answer.text)).toBe('KS-4101');
    if (status === 404) expect(codeOf(answer.text)).toBe('KS-4204');
    if (status === 200) expect(JSON.parse(answer.text)).toMatchObject({ playerId: '€' });
  });
});

test('never lets text from a request add a line to the head of the answer', async () => {
  const inject = 'x\r\nX-Injected: yes\r\n\r\nHTTP/1.1 200 OK\r\nX-Injected: yes';
  const encoded = encodeURIComponent(inject);
  const wire = await open();
  for (const [bytes, status] of [
    [spin(inject), 400],
    [spin('i', { requestId: inject }), 400],
    [spin('i', { requestId: 'x\u2028\u0120\u010d\u010aX-Injected: yes' }), 200],
    [plainRequest('GET', `${BASE}/players/${encoded}`, partner.key), 404],
    [plainRequest('GET', `${BASE}/players/${encoded}%ZZ`, partner.key), 400],
    [plainRequest('GET', `${BASE}/spins/${encoded}`, partner.key), 404],
    [plainRequest('GET', `${BASE}/${encoded}?page=${encoded}`, partner.key), 404],
  ] as const) {
    const answer = await wire.ask(bytes);
    expect([answer.status, answer.head.toLowerCase()]).toEqual([
      status,
      expect.not.stringContaining('x-injected'),
    ]);
    expect(wire.unread).toBe('');
  }
});
