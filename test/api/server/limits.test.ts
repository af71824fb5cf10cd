/**
 * Tests rate limits (docs/contract.md §4): each partner has fixed windows, shared by all front ends and timed
 * by the clock of Redis.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../../src/app/embedded/index.js';
import { world } from '../../setup/world.js';
import { Client, type TestPartner } from '../../support/client.js';
import { expectWithin } from '../../support/expectWithin.js';
import { type RawAnswer, raw } from '../../support/rawRequest.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { constants, environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type StoreClock, storeClock } from '../../support/storeClock.js';
import { until } from '../../support/wait.js';

const SPIN = '/api/partner/v1/spin';
const LIMIT = 300;

const { stores } = world();
let clock: StoreClock;
let worker: ServerProcess;
/** Two processes on one port. The kernel spreads new connections over them. */
let fronts: ServerProcess[];
let client: Client;

beforeAll(async () => {
  clock = storeClock(stores.redisUrl);
  const PORT = String(await freePort());
  const env = (ROLES: string) =>
    environment(stores, { ROLES, PORT, ...constants({ authFailureLimit: 1_000_000 }) });
  worker = await spawnService(env('worker'));
  fronts = await Promise.all([spawnService(env('http')), spawnService(env('http'))]);
  client = new Client(`http://127.0.0.1:${PORT}`);
});

afterAll(async () => {
  await Promise.all(fronts.map((front) => front.end()));
  await worker.end();
  clock.close();
});

// Each test starts with at least 20 s left in the minute, so that no window ends during the test.
beforeEach(() => clock.room(20));

/** Sends one request on a new connection. */
async function ask(key: string, method: string, path: string, body?: unknown): Promise<RawAnswer> {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(text)}`];
  return raw(client.base, [`${method} ${path} HTTP/1.1`, `X-API-Key: ${key}`, ...length], text);
}

/** Returns the name of the process that answered. */
const frontOf = (answer: RawAnswer): string => answer.headers.get('x-request-id')!.split('-')[0]!;
const numberOf = (answer: RawAnswer, name: string): number => Number(answer.headers.get(name));

function expectWindow(answer: RawAnswer, policy: 'spin' | 'api', limit: number, remaining: number): void {
  const reset = numberOf(answer, 'x-ratelimit-reset');
  expect(numberOf(answer, 'x-ratelimit-limit')).toBe(limit);
  expect(numberOf(answer, 'x-ratelimit-remaining')).toBe(remaining);
  expect(reset % 60).toBe(0);
  expect(answer.headers.get('ratelimit-policy')).toBe(`"${policy}";q=${limit};w=60`);
  expect(answer.headers.get('ratelimit')).toMatch(
    new RegExp(`^"${policy}";r=${remaining};t=([1-9]|[1-5]\\d|60)$`),
  );
}

async function expectLimited(answer: RawAnswer, policy: 'spin' | 'api', limit: number): Promise<void> {
  expect(answer.status).toBe(429);
  expectWindow(answer, policy, limit, 0);
  const retryAfter = numberOf(answer, 'retry-after');
  const secondsLeft = numberOf(answer, 'x-ratelimit-reset') - (await clock.seconds());
  expect(Math.abs(retryAfter - secondsLeft)).toBeLessThanOrEqual(2);
  expect(JSON.parse(answer.body)).toEqual({
    status: 'error',
    errorCode: policy === 'spin' ? 'KS-4291' : 'KS-4292',
    message: expect.any(String),
    docUrl: expect.stringContaining('/docs/errors#'),
    retryAfter,
  });
}

describe('a spin rate limit of 300', () => {
  let partner: TestPartner;
  let secondKey: string;
  let spin: { gameId: number; playerId: string; wagerUsd: number };
  /** The minute of the rate limit in which the partner used up its limit. */
  let minute: number;

  beforeAll(async () => {
    partner = await client.newPartner({ spinRateLimit: LIMIT });
    const issued = await client.operator('POST', `/partners/${partner.partnerId}/keys`, {});
    secondKey = issued.body.apiKey as string;
    const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
    spin = { gameId, playerId: 'p', wagerUsd: 0.25 };
  });

  test('lets exactly 300 of 310 spins through, over two keys and two front ends', async () => {
    const answers: RawAnswer[] = [];
    for (let round = 0; round < 10; round++) {
      const asked = Array.from({ length: 31 }, (_, i) =>
        ask(i % 2 === 0 ? partner.key : secondKey, 'POST', SPIN, spin),
      );
      answers.push(...(await Promise.all(asked)));
    }
    minute = Math.floor((await clock.seconds()) / 60);
    const served = answers.filter((answer) => answer.status === 200);
    const limited = answers.filter((answer) => answer.status !== 200);
    expect(served).toHaveLength(LIMIT);
    for (const answer of limited) await expectLimited(answer, 'spin', LIMIT);
    const remaining = served.map((answer) => numberOf(answer, 'x-ratelimit-remaining')).sort((a, b) => b - a);
    expect(remaining).toEqual(Array.from({ length: LIMIT }, (_, i) => LIMIT - 1 - i));
    expect(new Set(answers.map((answer) => numberOf(answer, 'x-ratelimit-reset')))).toEqual(
      new Set([(minute + 1) * 60]),
    );
    for (const some of [answers, served]) expect(new Set(some.map(frontOf)).size).toBe(2);
  });

  test('limits the spins of a partner separately from its other requests and from other partners', async () => {
    expect((await ask(partner.key, 'GET', '/api/partner/v1/version')).status).toBe(200);
    const neighbour = await client.newPartner({ spinRateLimit: 1 });
    const answer = await ask(neighbour.key, 'POST', SPIN, spin);
    expect(answer.status).toBe(403);
    expectWindow(answer, 'spin', 1, 0);
  });

  test('allows the full number of spins again from the next minute on', async () => {
    await until(async () => Math.floor((await clock.seconds()) / 60) > minute, 'the minute is over');
    const answer = await ask(secondKey, 'POST', SPIN, spin);
    expect(answer.status).toBe(200);
    expectWindow(answer, 'spin', LIMIT, LIMIT - 1);
  });
});

describe('the counting of requests', () => {
  test('counts refused requests and unknown paths as API requests, but not as spins', async () => {
    const { key } = await client.newPartner({ apiRateLimit: 7, spinRateLimit: 3 });
    const requests: [method: string, path: string, status: number, body?: unknown][] = [
      ['GET', '/nowhere', 404],
      ['DELETE', '/spin', 404],
      ['HEAD', '/version', 200],
      ['POST', '/games', 400, {}],
      ['POST', '/par-sheets', 413, 'x'.repeat(10_241)],
      ['GET', '/players/nobody', 404],
      ['GET', '/version', 200],
    ];
    for (const [i, [method, path, status, body]] of requests.entries()) {
      const answer = await ask(key, method, `/api/partner/v1${path}`, body);
      expect(answer.status, path).toBe(status);
      expectWindow(answer, 'api', 7, 6 - i);
    }
    for (const path of ['/nowhere', '/version']) {
      await expectLimited(await ask(key, 'GET', `/api/partner/v1${path}`), 'api', 7);
    }
    expectWindow(await ask(key, 'POST', SPIN, {}), 'spin', 3, 2);
  });

  test('counts malformed, refused and oversized spins as spins, and ignores their bodies beyond the limit', async () => {
    const { key } = await client.newPartner({ apiRateLimit: 1, spinRateLimit: 4 });
    const refused: [body: unknown, status: number][] = [
      ['{', 400],
      [{}, 400],
      ['x'.repeat(4097), 413],
      [{ gameId: 1, playerId: 'p', wagerUsd: 1 }, 403],
    ];
    for (const [i, [body, status]] of refused.entries()) {
      const answer = await ask(key, 'POST', SPIN, body);
      expect(answer.status).toBe(status);
      expectWindow(answer, 'spin', 4, 3 - i);
    }
    for (const [body] of refused) await expectLimited(await ask(key, 'POST', SPIN, body), 'spin', 4);
    expect((await ask(key, 'GET', '/api/partner/v1/version')).status).toBe(200);
  });
});

test('applies a changed rate limit within a second on both front ends', async () => {
  const { key, partnerId } = await client.newPartner({ apiRateLimit: 1_000_000 });
  const limitsSeen = async (): Promise<Map<string, number>> => {
    const seen = new Map<string, number>();
    await until(async () => {
      const answer = await ask(key, 'GET', '/api/partner/v1/version');
      seen.set(frontOf(answer), numberOf(answer, 'x-ratelimit-limit'));
      return seen.size === 2;
    }, 'both front ends have answered');
    return seen;
  };
  expect([...(await limitsSeen()).values()]).toEqual([1_000_000, 1_000_000]);
  await client.operator('PATCH', `/partners/${partnerId}`, { apiRateLimit: 900_000 });
  const changedAt = performance.now();
  await until(
    async () => [...(await limitsSeen()).values()].every((limit) => limit === 900_000),
    'both know',
  );
  expectWithin(performance.now() - changedAt, 1000);

  await client.operator('PATCH', `/partners/${partnerId}`, { apiRateLimit: 1 });
  const loweredAt = performance.now();
  const limitedBy = new Set<string>();
  await until(async () => {
    const answer = await ask(key, 'GET', '/api/partner/v1/version');
    if (answer.status === 429) limitedBy.add(frontOf(answer));
    return limitedBy.size === 2;
  }, 'both refuse');
  expectWithin(performance.now() - loweredAt, 1000);
});
