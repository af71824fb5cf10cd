/** Tests that refused requests and readiness checks cost the stores almost nothing. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { type Cable, proxy } from '../../support/proxy.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { storeClock } from '../../support/storeClock.js';
import { pause } from '../../support/wait.js';

const LIMIT = 5;

const { stores } = world();
let cable: Cable;
let database: Cable;
let service: Awaited<ReturnType<typeof startService>>;
let calls = 0;
let looks = 0;
let reads = 0;
/** The name of the prepared statement that reads the newest change number. */
let newestRead: string | undefined;

beforeAll(async () => {
  cable = await proxy(stores.redisUrl);
  database = await proxy(stores.databaseUrl);
  cable.beforeRequest = (chunk) => {
    // Operations that requests send to a cell name the `partners` key, but the worker's calls do not.
    if (/evalsha/i.test(chunk.toString('latin1')) && chunk.includes(':partners')) calls++;
  };
  database.beforeRequest = (chunk) => {
    if (chunk.includes('FROM recoveries')) looks++;
    // The statement is prepared once for each connection, so later executions contain only its name.
    newestRead ??= /(spindle_\d+)\0[^\0]*FROM change_number/.exec(chunk.toString('latin1'))?.[1];
    if (newestRead !== undefined && chunk.includes(`\0${newestRead}\0`)) reads++;
  };
  service = await startService({ redisUrl: cable.url, databaseUrl: database.url });
});

afterAll(async () => {
  await service?.stop();
  await cable?.close();
  await database?.close();
});

test('refuses a partner over its rate limit without a call to Redis, until the window ends or the limit changes', async () => {
  const partner = await service.newPartner();
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const limited = (spinRateLimit: number) =>
    service.operator('PATCH', `/partners/${partner.partnerId}`, { spinRateLimit });
  const spin = () => service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  await limited(LIMIT);
  const clock = storeClock(stores.redisUrl);
  await clock.room(20);
  for (let i = 0; i < LIMIT; i++)
    expect((await spin()).headers.get('x-ratelimit-remaining')).toBe(`${LIMIT - 1 - i}`);
  const first = await spin();
  expect(first).toMatchObject({ status: 429, body: { errorCode: 'KS-4291' } });
  calls = 0;
  for (let i = 0; i < 200; i++) {
    const refused = await spin();
    expect(refused).toMatchObject({ status: 429, body: { errorCode: 'KS-4291' } });
    for (const [name, value] of [
      ['x-ratelimit-limit', `${LIMIT}`],
      ['x-ratelimit-remaining', '0'],
      ['x-ratelimit-reset', first.headers.get('x-ratelimit-reset')],
    ] as const)
      expect(refused.headers.get(name)).toBe(value);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(
      Number(first.headers.get('retry-after')),
    );
  }
  expect(calls).toBe(0);
  // Requests in the partner's other window are still served, and an invalid spin gets 429 as well.
  expect((await service.partner('GET', '/version', partner.key)).status).toBe(200);
  expect((await service.spin(partner.key, {})).status).toBe(429);
  await limited(LIMIT + 1);
  expect((await spin()).status).toBe(200);
  expect((await spin()).status).toBe(429);
  // The window in which requests are refused ends by the clock of Redis.
  const end = Number(first.headers.get('x-ratelimit-reset'));
  let askedAt = await clock.seconds();
  let answer = await spin();
  while (answer.status === 429) {
    expect(askedAt).toBeLessThanOrEqual(end);
    await pause(20);
    askedAt = await clock.seconds();
    answer = await spin();
  }
  expect(answer.status).toBe(200);
  expect(await clock.seconds()).toBeGreaterThanOrEqual(end);
  clock.close();
});

test('shares one check of the stores among all /statusz requests within 250 ms', async () => {
  const started = performance.now();
  looks = 0;
  // The answers before the next check show the last one.
  for (let i = 0; i < 10 || looks === 0; i++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => service.request('GET', '/statusz')));
    for (const { status } of answers) expect(status).toBe(200);
  }
  expect(looks).toBeLessThanOrEqual((performance.now() - started) / 250 + 2);
});

test('looks up unknown keys at most 40 times a second, and still accepts a newly issued key at once', async () => {
  const ask = (key: string) => service.partner('GET', '/version', key);
  const started = performance.now();
  reads = 0;
  await Promise.all(
    Array.from({ length: 8 }, async (_, client) => {
      for (let i = 0; i < 50; i++) expect([401, 429]).toContain((await ask(`ks_${client}_${i}`)).status);
    }),
  );
  expect(reads).toBeGreaterThan(1);
  expect(reads).toBeLessThanOrEqual((performance.now() - started) / 25 + 2);
  const flood = Promise.all(Array.from({ length: 8 }, (_, i) => ask(`ks_${i}`)));
  const { key } = await service.newPartner();
  expect((await ask(key)).status).toBe(200);
  await flood;
});
