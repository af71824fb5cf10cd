import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { spellings } from '../../src/platform/secretsInLogs.js';
import { world } from '../setup/world.js';
import type { Answer, TestPartner } from '../support/client.js';
import { load, portOf, spinRequest } from '../support/load.js';
import { type Cable, proxy } from '../support/proxy.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { constants, environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

const OPERATOR_KEY = 'an/operator+key "of" 40 characters or so';
/**
 * Minimum number of refused requests. It exceeds the number of lines that the log may write in a few seconds.
 */
const REFUSED_MIN = 1000;
const PLAYER = 'player-that-must-not-be-logged';
const REQUEST = 'request-that-must-not-be-logged';

interface Line {
  level: number;
  time: number;
  msg: string;
  requestId?: string;
  operation?: string;
  errorCode?: string;
  partnerId?: number;
  status?: number;
  unsaid?: number;
  err?: { type: string; message: string; stack: string };
}

const { stores } = world();
let redisCable: Cable;
let postgresCable: Cable;
let service: ServerProcess;
let partner: TestPartner;
let gameId: number;
/** Secrets that no log line may contain, by name. */
const secrets = new Map<string, string>();

/** The JSON lines of the log, without the text that a start prints for people. */
const lines = (): Line[] =>
  service
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);
const operator = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
  service.client.request<T>(method, `/api/operator/v1${path}`, { key: OPERATOR_KEY, body });
const spin = (body: object, key = partner.key) => service.client.spin(key, body);
async function lineOf(answer: Answer, msg: string): Promise<Line> {
  const id = answer.headers.get('x-request-id')!;
  let found: Line | undefined;
  await until(() => {
    found = lines().find((line) => line.requestId === id && line.msg === msg);
    return found !== undefined;
  }, `the log has «${msg}» of ${id}`);
  return found!;
}

beforeAll(async () => {
  redisCable = await proxy(stores.redisUrl);
  postgresCable = await proxy(stores.databaseUrl);
  service = await spawnService({
    ...environment({ redisUrl: redisCable.url, databaseUrl: postgresCable.url }),
    CELLS: '1',
    OPERATOR_API_KEY: OPERATOR_KEY,
    LOG_LEVEL: 'trace',
    BATCH_MAX: '64',
    SPIN_DEADLINE_MS: '2000',
    ...constants({ webhookRetryDelaysMs: [10] }),
  });
  secrets.set('operator key', OPERATOR_KEY);
  for (const [name, url] of [
    ['password of Redis', stores.redisUrl],
    ['password of Postgres', stores.databaseUrl],
  ] as const) {
    expect(new URL(url).password.length).toBeGreaterThan(8);
    secrets.set(name, new URL(url).password);
  }
  const made = await operator<{ partnerId: number }>('POST', '/partners', {
    slug: 'acme',
    name: 'Acme',
    environment: 'sandbox',
    spinRateLimit: 1_000_000,
    apiRateLimit: 1_000_000,
    largeWinThresholdUsd: 0.01,
  });
  const { partnerId } = made.body;
  const { body } = await operator<{ apiKey: string }>('POST', `/partners/${partnerId}/keys`, {});
  partner = { partnerId, key: body.apiKey };
  secrets.set('API key', partner.key);
});

afterAll(async () => {
  await service?.end();
  await redisCable?.close();
  await postgresCable?.close();
});

test('warns about a setting that only an earlier version had', () => {
  expect(
    lines().find(({ msg }) => msg === 'ignoring settings that this version does not have'),
  ).toMatchObject({
    level: 40,
    settings: ['BATCH_MAX'],
  });
});

describe('the log at its most detailed level', () => {
  test('logs a line for each answer with its correlation id', async () => {
    const { client } = service;
    const upload = await client.partner<{ parSheetId: number }>(
      'POST',
      '/par-sheets',
      partner.key,
      parSheet('classic-3-reel'),
    );
    const game = await client.partner<{ gameConfigId: number }>('POST', '/games', partner.key, {
      parSheetId: upload.body.parSheetId,
      displayName: 'Classic',
      configName: 'CLASSIC',
    });
    gameId = game.body.gameConfigId;
    await until(
      async () => (await spin({ gameId, playerId: PLAYER, wagerUsd: 0.25 })).status === 200,
      'the game is played',
    );
    const played = await spin({ gameId, playerId: PLAYER, wagerUsd: 0.25, requestId: REQUEST });
    expect(await lineOf(played, 'answered')).toMatchObject({
      level: 20,
      operation: 'spin',
      status: 200,
      partnerId: partner.partnerId,
    });
    const wrong = await client.spin('ks_a-key-that-there-is-not-and-never-was', { gameId, playerId: PLAYER });
    secrets.set('wrong key', 'ks_a-key-that-there-is-not-and-never-was');
    expect(await lineOf(wrong, 'answered')).toMatchObject({ status: 401, errorCode: 'KS-4002' });
    await spin({ gameId, playerId: PLAYER, wagerUsd: 9 });
    await spin({ gameId, playerId: `${PLAYER}\0`, wagerUsd: 0.25 });
    await client.partner('POST', '/par-sheets', partner.key, { gameTitle: PLAYER });
  });

  test('logs webhook deliveries that nobody answers without any secret', async () => {
    // Nothing listens on this port.
    const { body } = await service.client.partner<{ id: number; secret: string }>(
      'POST',
      '/webhooks',
      partner.key,
      { url: 'http://localhost:1/hook?token=of-the-receiver', events: ['spin.large_win'] },
    );
    secrets.set('webhook secret', body.secret);
    secrets.set("webhook secret's bytes", body.secret.replace(/^whsec_/, ''));
    for (let won = false; !won; ) {
      const { body: answer } = await spin({ gameId, playerId: PLAYER, wagerUsd: 0.25 });
      won = ((answer.outcome as { payoutUsd: number } | undefined)?.payoutUsd ?? 0) > 0;
    }
    await until(
      () => lines().some(({ msg }) => msg === 'webhook delivery failed permanently'),
      'the delivery has failed for good',
    );
  });

  test('logs the sale of raffle tickets without any secret', async () => {
    const { body } = await operator<{ gameConfigId: number }>(
      'POST',
      `/partners/${partner.partnerId}/raffles`,
      {
        displayName: 'A raffle',
        configName: 'RAFFLE',
        ticketPriceUsd: 0.25,
        poolSize: 50,
        prizes: [{ prizeName: 'Car', prizeTier: 6, valueUsd: 50, count: 1 }],
      },
    );
    const ticket = { gameId: body.gameConfigId, playerId: PLAYER, wagerUsd: 0.25 };
    await until(async () => (await spin(ticket)).status === 200, 'a ticket is sold');
  });

  test('logs a lost connection to Postgres with the id, operation, code and partner of the failed request', async () => {
    postgresCable.answers = false;
    postgresCable.cut();
    const [failed, mended] = await Promise.all([
      service.client.partner('GET', '/webhooks', partner.key),
      operator('POST', `/partners/${partner.partnerId}/players/${PLAYER}/adjustments`, {
        requestId: REQUEST,
        amountUsd: 1,
        reason: PLAYER,
      }),
    ]);
    postgresCable.answers = true;
    postgresCable.cut();
    expect(failed.status).toBeGreaterThanOrEqual(500);
    const about = {
      operation: 'listWebhooks',
      errorCode: failed.body.errorCode,
      partnerId: partner.partnerId,
    };
    expect(await lineOf(failed, 'request failed')).toMatchObject({ level: 50, ...about });
    const line = await lineOf(failed, 'request answered with an error');
    expect(line).toMatchObject({ level: 40, status: failed.status, ...about });
    expect(mended.status).toBeGreaterThanOrEqual(500);
    expect(await lineOf(mended, 'request failed')).toMatchObject({ operation: 'adjustBalance' });
    await until(async () => (await service.client.request('GET', '/statusz')).status === 200, 'it is back');
  });

  test('logs few lines a second while thousands of requests fail without Redis, and counts the omitted lines', async () => {
    let refused = 0;
    const before = lines().length;
    redisCable.answers = false;
    redisCable.cut();
    const started = performance.now();
    const isOver = (): boolean => refused > REFUSED_MIN && performance.now() - started > 1000;
    const request = spinRequest(partner.key, JSON.stringify({ gameId, playerId: PLAYER, wagerUsd: 0.25 }));
    await load({
      port: portOf(service.client.base),
      connections: 64,
      next: () => (isOver() ? undefined : request),
      onAnswer: ({ status }) => {
        if (status === 503) refused++;
      },
    });
    const seconds = (performance.now() - started) / 1000;
    redisCable.answers = true;
    redisCable.cut();
    await until(async () => (await service.client.request('GET', '/statusz')).status === 200, 'it is back');
    // At this log level each answer has an additional line.
    const said = () =>
      lines()
        .slice(before)
        .filter(({ level }) => level >= 30);
    const about = () =>
      said().filter(({ msg, operation }) => msg === 'request answered with an error' && operation === 'spin');
    const count = () => about().reduce((sum, { unsaid = 0 }) => sum + 1 + unsaid, 0);
    await until(() => count() >= refused, 'the last lines are written');
    expect(count()).toBe(refused);
    expect(about().length).toBeLessThanOrEqual(6 * (Math.ceil(seconds) + 1));
    expect(said().length / seconds).toBeLessThan(100);
    for (const { requestId, errorCode, partnerId } of about()) {
      expect([typeof requestId, errorCode, partnerId]).toEqual(['string', 'KS-5002', partner.partnerId]);
    }
  });

  test('names the store that refuses a start in the log, without its password', async () => {
    const given = environment(stores, { LOG_LEVEL: 'trace' });
    for (const [name, url] of [
      ['REDIS_URL', stores.redisUrl],
      ['DATABASE_URL', stores.databaseUrl],
      ['REDIS_URL', 'redis://:nobody-listens-to-this@127.0.0.1:1'],
      ['DATABASE_URL', 'postgres://u:nobody-listens-to-this@127.0.0.1:1/x'],
    ] as const) {
      const other = new URL(url);
      if (other.port !== '1') other.password = 'a%2Fwrong%40password';
      const refused = spawnService({ ...given, [name]: other.href });
      const error = (await refused.then(
        () => undefined,
        (reason: Error) => reason,
      ))!;
      expect(error.message).toMatch(
        new RegExp(`Cannot connect to ${name === 'REDIS_URL' ? 'Redis' : 'Postgres'}`),
      );
      for (const secret of [...spellings([other.password]), ...secrets.values()]) {
        expect(error.message).not.toContain(secret);
      }
    }
  });

  test('never writes a secret to the log', async () => {
    const redis = new Redis(stores.redisUrl, { protocol: 2 });
    const sql = postgres(stores.databaseUrl, { max: 1 });
    try {
      const blocks = await sql<{ seed: Buffer; nonce: Buffer; outcomes: Buffer }[]>`
        SELECT seed, nonce, substring(outcomes FROM 1 FOR 32) AS outcomes FROM blocks`;
      expect(blocks.length).toBeGreaterThan(1);
      for (const [i, block] of blocks.entries()) {
        for (const [name, bytes] of Object.entries(block)) {
          secrets.set(`${name} ${i}`, bytes.toString('hex'));
          secrets.set(`${name} ${i} in base64`, bytes.toString('base64'));
          secrets.set(`${name} ${i} as numbers`, [...bytes].join(','));
        }
      }
    } finally {
      redis.disconnect();
      await sql.end();
    }
    secrets.set('body of a request', PLAYER);
    secrets.set('requestId of a body', REQUEST);
    const output = service.output();
    for (const [name, secret] of secrets) {
      for (const text of [secret, ...spellings([secret])]) expect(output.includes(text), name).toBe(false);
    }
    // The log contains lines of the detailed levels, so the check covers them.
    expect(lines().some(({ level }) => level < 30)).toBe(true);
  });
});
