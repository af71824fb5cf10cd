/**
 * Tests how the client reacts to each error of the catalogue and to missing answers. The answers are
 * scripted, so no server is needed.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  ERROR_CATALOG,
  NoAnswerError,
  Spindle,
  SpindleError,
  UnknownSpinError,
} from '../../clients/typescript/src/index.js';

const SPIN = { gameId: 1, playerId: 'alice', wagerUsd: 0.25 };
const CODES = Object.entries(ERROR_CATALOG);

/**
 * One scripted answer. `cut` means that the connection ends without an answer, `none` that it stays open
 * without one.
 */
type Scripted = { status: number; body: unknown; headers?: Record<string, string> } | 'cut' | 'none';

const refusal = (code: string, retryAfter?: number): Scripted => ({
  status: ERROR_CATALOG[code as keyof typeof ERROR_CATALOG].status,
  body: { status: 'error', errorCode: code, message: 'm' },
  ...(retryAfter === undefined ? {} : { headers: { 'Retry-After': String(retryAfter) } }),
});
const success: Scripted = { status: 200, body: { spinId: 's' } };

/** Creates a client whose requests get the scripted answers in turn. The last answer repeats. */
function scripted(answers: readonly Scripted[], options: { deadlineMs?: number; timeoutMs?: number } = {}) {
  const sent: { requestId?: string; atMs: number }[] = [];
  let made = 0;
  const client = new Spindle({
    baseUrl: 'http://service',
    apiKey: 'ks_key',
    ...options,
    newRequestId: () => `id-${++made}`,
    async fetch(request, { signal }) {
      const text = await request.text();
      sent.push({ ...(text === '' ? {} : JSON.parse(text)), atMs: performance.now() });
      const answer = answers[Math.min(sent.length, answers.length) - 1]!;
      if (answer === 'none') {
        return new Promise((_, reject) => {
          if (signal.aborted) reject(signal.reason);
          signal.addEventListener('abort', () => reject(signal.reason));
        });
      }
      if (answer === 'cut') throw new TypeError('fetch failed', { cause: new Error('ECONNRESET') });
      const body = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
      return new Response(body, {
        status: answer.status,
        ...(answer.headers && { headers: answer.headers }),
      });
    },
  });
  return { client, sent, ids: () => sent.map(({ requestId }) => requestId) };
}

/** Returns the result or the error of a call, with all waits skipped. */
async function outcome<Result>(call: Promise<Result>): Promise<Result | Error> {
  const settled = call.catch((error: Error) => error);
  await vi.runAllTimersAsync();
  return settled;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('retries of a spin by the client', () => {
  test.each(CODES.filter(([, { retry }]) => retry === 'never'))(
    'the client does not retry a spin that is refused with %s',
    async (code) => {
      const { client, ids } = scripted([refusal(code), success]);
      expect(await outcome(client.spin(SPIN))).toMatchObject({ name: 'SpindleError', code, retry: 'never' });
      expect(ids()).toEqual(['id-1']);
    },
  );

  test.each(CODES.filter(([, { retry }]) => retry !== 'never'))(
    'the client retries a spin with the same requestId after %s',
    async (code) => {
      const { client, ids } = scripted([refusal(code), success]);
      expect(await outcome(client.spin(SPIN))).toEqual({ spinId: 's', requestId: 'id-1' });
      expect(ids()).toEqual(['id-1', 'id-1']);
    },
  );

  test.each(CODES.filter(([, { retry }]) => retry === 'new-request-id'))(
    'the client keeps a requestId given by the caller after %s, so the caller can find the spin',
    async (code) => {
      const { client, ids } = scripted([refusal(code), 'cut', success]);
      expect(await outcome(client.spin({ ...SPIN, requestId: 'mine' }))).toMatchObject({ requestId: 'mine' });
      expect(ids()).toEqual(['mine', 'mine', 'mine']);
    },
  );

  test('the client keeps the requestId of a spin if it got no answer, or an answer from another server', async () => {
    const { client, ids } = scripted(['cut', 'cut', { status: 502, body: '<html>' }, success]);
    expect(await outcome(client.spin(SPIN))).toMatchObject({ requestId: 'id-1' });
    expect(ids()).toEqual(Array(4).fill('id-1'));
  });

  test("the client keeps the requestId of a possibly unfinished spin even if the service didn't find it", async () => {
    const { client, ids } = scripted(['cut', refusal('KS-5011'), success]);
    await outcome(client.spin(SPIN));
    expect(ids()).toEqual(['id-1', 'id-1', 'id-1']);
  });

  test('the client waits for Retry-After before it retries a spin', async () => {
    const { client, sent } = scripted([refusal('KS-4291', 42), success]);
    await outcome(client.spin(SPIN));
    expect(sent[1]!.atMs - sent[0]!.atMs).toBeGreaterThanOrEqual(42_000);
  });

  test('the client reports a spin at its deadline as unknown if the spin may have happened, otherwise as refused', async () => {
    const lost = scripted(['cut'], { deadlineMs: 3000 });
    const unknown = (await outcome(lost.client.spin(SPIN))) as UnknownSpinError;
    expect(unknown).toBeInstanceOf(UnknownSpinError);
    expect(unknown.requestId).toBe('id-1');
    expect(unknown.cause).toBeInstanceOf(NoAnswerError);
    const revoked = scripted(['cut', refusal('KS-4003')]);
    expect(await outcome(revoked.client.spin(SPIN))).toBeInstanceOf(UnknownSpinError);
    const full = scripted([refusal('KS-5012')], { deadlineMs: 3000 });
    expect(await outcome(full.client.spin(SPIN))).toMatchObject({ name: 'SpindleError', code: 'KS-5012' });
  });

  test.each(CODES.filter(([, { retry }]) => retry !== 'never'))(
    'the client reports a spin that ends with %s as unknown only if it may have happened',
    async (code, { status }) => {
      const { client } = scripted([refusal(code)], { deadlineMs: 3000 });
      const { happened } = new SpindleError({ status, code, message: 'm' });
      const name = happened === 'unknown' ? 'UnknownSpinError' : 'SpindleError';
      expect(await outcome(client.spin(SPIN))).toMatchObject({ name });
    },
  );

  test('the client has the id of the HTTP request under its old name, too', () => {
    const error = new SpindleError({ status: 400, code: 'KS-4103', message: 'm', httpRequestId: 'req-1' });
    expect([error.httpRequestId, error.requestId]).toEqual(['req-1', 'req-1']);
  });

  test('the client reports each attempt before it sends it, and stops on an abort signal', async () => {
    const { client, sent } = scripted(['cut', 'cut', success]);
    const stop = new AbortController();
    const told: [number, string, number][] = [];
    const call = client.spin(SPIN, {
      signal: stop.signal,
      onAttempt({ attempt, requestId }) {
        told.push([attempt, requestId, sent.length]);
        if (attempt === 2) stop.abort();
      },
    });
    expect(await outcome(call)).toMatchObject({ name: 'UnknownSpinError', requestId: 'id-1' });
    expect(told).toEqual([
      [1, 'id-1', 0],
      [2, 'id-1', 1],
    ]);
  });
});

/** Calls of each kind that the client repeats. */
const CALLS: readonly (readonly [name: string, call: (client: Spindle) => Promise<unknown>])[] = [
  ['a spin', (client) => client.spin(SPIN)],
  ['a read', (client) => client.version()],
  ['a write', (client) => client.registerGame({ parSheetId: 1, displayName: 'G', configName: 'G' })],
  ['a deal', (client) => client.blackjack.deal(SPIN)],
  ['an action', (client) => client.blackjack.act({ roundId: 'r', lastActionSeq: 0 }, 'stand')],
  ['a read of a round', (client) => client.blackjack.get('r')],
];
/** Length of a window of the rate limit, and so the longest `Retry-After`. */
const WINDOW_SECONDS = 60;

describe('the deadline of a call by the client', () => {
  // The clock of these tests is simulated, so the times are exact.
  const lasted = async (call: Promise<unknown>): Promise<number> => {
    const startMs = performance.now();
    const endMs = call.then(
      () => Number.NaN,
      () => performance.now(),
    );
    await vi.runAllTimersAsync();
    return (await endMs) - startMs;
  };

  test.each(CALLS)('an attempt without an answer ends at the deadline: %s', async (_name, call) => {
    const { client, sent } = scripted(['none'], { deadlineMs: 8000 });
    expect(await lasted(call(client))).toBeLessThanOrEqual(8000);
    expect(sent).toHaveLength(1);
  });

  test.each(CALLS.filter(([name]) => name !== 'a write'))(
    'all attempts without an answer end at the deadline: %s',
    async (_name, call) => {
      const { client, sent } = scripted(['none'], { deadlineMs: 8000, timeoutMs: 3000 });
      expect(await lasted(call(client))).toBeLessThanOrEqual(8000);
      expect(sent).toHaveLength(3);
    },
  );

  test.each(CALLS)(
    'the client does not wait for a window that begins after the deadline: %s',
    async (_name, call) => {
      const { client, sent } = scripted([refusal('KS-4291', 9), success], { deadlineMs: 8000 });
      expect(await lasted(call(client))).toBeLessThanOrEqual(8000);
      expect(sent).toHaveLength(1);
    },
  );

  test('a refused spin is reported as refused if its repetition would have no time for an answer', async () => {
    // The wait of 1,050 to 1,100 ms leaves at most 100 ms for a second attempt.
    const { client, sent } = scripted([refusal('KS-5012', 1), 'none'], { deadlineMs: 1150 });
    expect(await outcome(client.spin(SPIN))).toMatchObject({ name: 'SpindleError', code: 'KS-5012' });
    expect(sent).toHaveLength(1);
  });

  test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, 2 ** 31])('%d is not a valid time', (time) => {
    for (const name of ['deadlineMs', 'timeoutMs']) {
      expect(() => scripted([], { [name]: time })).toThrow(`${name} must be from 0`);
    }
  });
});

describe('errors of the client', () => {
  test('the text and the JSON of a refusal have its code', async () => {
    const details = [{ path: '/wagerUsd', message: 'must be 0.25' }];
    const body = { status: 'error', errorCode: 'KS-4103', message: 'The wager is wrong', details };
    const { client } = scripted([{ status: 400, body, headers: { 'X-Request-Id': 'req-1' } }]);
    const error = await outcome(client.spin(SPIN));
    expect(String(error)).toBe('SpindleError: KS-4103 The wager is wrong: /wagerUsd must be 0.25');
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'SpindleError',
      message: 'The wager is wrong',
      code: 'KS-4103',
      status: 400,
      retry: 'never',
      details,
      happened: 'no',
      httpRequestId: 'req-1',
    });
  });

  test('the JSON of an unknown result has the requestId of the spin and the last error', async () => {
    const { client } = scripted(['cut'], { deadlineMs: 1000 });
    expect(JSON.parse(JSON.stringify(await outcome(client.spin(SPIN))))).toEqual({
      name: 'UnknownSpinError',
      message: expect.stringMatching(/id-1 is unknown, because .*ECONNRESET/),
      requestId: 'id-1',
      cause: { name: 'NoAnswerError', message: expect.stringContaining('ECONNRESET') },
    });
  });

  test('the JSON of an error leaves out a circular error of a replaced fetch', async () => {
    const circular: Error & { self?: unknown } = new Error('closed');
    circular.self = circular;
    const fetch = () => Promise.reject(circular);
    const client = new Spindle({ baseUrl: 'http://service', apiKey: 'ks_key', deadlineMs: 1000, fetch });
    const error = await outcome(client.version());
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'NoAnswerError',
      message: 'The service at http://service is not responding: closed',
    });
  });
});

describe('retries of other calls by the client', () => {
  test('the client retries reads, but a write only if the rate limit refused it', async () => {
    const read = scripted(['cut', refusal('KS-5002', 2), { status: 200, body: { games: [] } }]);
    expect(await outcome(read.client.listGames())).toEqual([]);
    expect(read.sent).toHaveLength(3);
    const game = { parSheetId: 1, displayName: 'G', configName: 'G' };
    const limited = scripted([refusal('KS-4292', 9), { status: 201, body: { gameConfigId: 7 } }]);
    expect(await outcome(limited.client.registerGame(game))).toEqual({ gameConfigId: 7 });
    const cut = scripted(['cut']);
    expect(await outcome(cut.client.registerGame(game))).toBeInstanceOf(NoAnswerError);
    expect(cut.sent).toHaveLength(1);
  });

  test.each(CALLS)('by default the client outlasts a window of the rate limit: %s', async (_name, call) => {
    const { client, sent } = scripted([refusal('KS-4291', WINDOW_SECONDS), success]);
    expect(await outcome(call(client))).not.toBeInstanceOf(Error);
    expect(sent).toHaveLength(2);
    expect(sent[1]!.atMs - sent[0]!.atMs).toBeGreaterThanOrEqual(WINDOW_SECONDS * 1000);
  });

  test('the client throws an error with the code, details and correlation id of the service', async () => {
    const details = [{ path: '/configName', message: 'is required' }];
    const body = { status: 'error', errorCode: 'KS-4102', message: 'm', details };
    const { client } = scripted([{ status: 400, body, headers: { 'X-Request-Id': 'req-1' } }]);
    const error = (await outcome(client.uploadParSheet({} as never))) as SpindleError;
    expect(error).toBeInstanceOf(SpindleError);
    expect(error).toMatchObject({
      code: 'KS-4102',
      status: 400,
      retry: 'never',
      details,
      happened: 'no',
      httpRequestId: 'req-1',
    });
  });

  test('the client treats an unknown error code according to its HTTP status', async () => {
    const unknown = (status: number): Scripted => ({
      status,
      body: { status: 'error', errorCode: 'KS-9999', message: 'm' },
    });
    const never = scripted([unknown(422), success]);
    expect(await outcome(never.client.spin(SPIN))).toMatchObject({ code: 'KS-9999', retry: 'never' });
    const later = scripted([unknown(503), success]);
    expect(await outcome(later.client.spin(SPIN))).toMatchObject({ requestId: 'id-1' });
  });

  test('the client lists every item once, even if newer items shift the pages', async () => {
    const spinOf = (n: number) => ({ spinId: `s-${n}` });
    const pageOf = (from: number, count: number, total: number): Scripted => ({
      status: 200,
      body: { spins: Array.from({ length: count }, (_, i) => spinOf(from - i)), page: 1, limit: 100, total },
    });
    // Page 1 of 150 spins has spins 150 … 51. Then 2 spins are added, so page 2 begins at spin 52.
    const { client } = scripted([pageOf(150, 100, 150), pageOf(52, 52, 152)]);
    const ids: string[] = [];
    for await (const { spinId } of client.playerSpins('alice')) ids.push(spinId);
    expect(ids).toEqual(Array.from({ length: 150 }, (_, i) => `s-${150 - i}`));
  });
});
