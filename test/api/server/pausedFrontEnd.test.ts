/**
 * Tests that a request is judged again after a wait: by a front end that was paused, and while Redis does not
 * respond.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import type { Answer, TestPartner } from '../../support/client.js';
import { type Cable, proxy } from '../../support/proxy.js';
import { deal, newTable } from '../../support/rounds.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import {
  constants,
  environment,
  type LoggedService,
  spawnService,
  startLogged,
} from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { stores, service } = world();
let paused: ServerProcess;
let partner: TestPartner;
let gameId: number;
let table: number;

beforeAll(async () => {
  const settings = { ROLES: 'http', ...constants({ restrictionReadMs: 600 }) };
  paused = await spawnService(environment(stores, settings));
});

beforeEach(async () => {
  partner = await service.newPartner({ openingBalanceUsd: 1000 });
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  table = await newTable(service, partner.partnerId);
});

afterAll(async () => {
  await paused?.end('SIGKILL').catch(() => {});
});

const spinBody = () => ({ gameId, playerId: 'p', wagerUsd: 0.25 });
const keyId = async () => {
  const { body } = await service.operator<{ keys: { keyId: number }[] }>(
    'GET',
    `/partners/${partner.partnerId}/keys`,
  );
  return body.keys[0]!.keyId;
};
const revoke = async () => service.operator('DELETE', `/partners/${partner.partnerId}/keys/${await keyId()}`);
const change = (body: object) => service.operator('PATCH', `/partners/${partner.partnerId}`, body);
/** Resolves once the second is over within which a change takes effect (docs/contract.md §3). */
const secondSince = (changedAt: number) =>
  until(() => performance.now() - changedAt > 1000, 'the second of the contract is over');

const spin = () => paused.client.spin(partner.key, spinBody());
const asks: Readonly<Record<string, () => Promise<Answer<unknown>>>> = {
  'a spin': spin,
  'a deal': () => deal(paused.client, partner.key, table, 'p'),
  'a webhook': () =>
    paused.client.partner('POST', '/webhooks', partner.key, {
      url: 'https://example.com/hook',
      events: ['LARGE_WIN'],
    }),
  'a read': () => paused.client.partner('GET', '/players', partner.key),
};

const cases: readonly (readonly [
  change: string,
  make: () => Promise<{ readonly status: number }>,
  ask: string,
  refused: readonly string[],
])[] = [
  ...Object.keys(asks).map((ask) => ['the key is revoked', revoke, ask, ['KS-4003', 'KS-5002']] as const),
  ['the partner is deactivated', () => change({ isActive: false }), 'a spin', ['KS-4005', 'KS-5002']],
  [
    'the game is suspended',
    () => service.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' }),
    'a spin',
    ['KS-4202', 'KS-5002'],
  ],
  [
    'the table is suspended',
    () => service.operator('PATCH', `/games/${table}`, { status: 'SUSPENDED' }),
    'a deal',
    ['KS-4202', 'KS-5002'],
  ],
  ['the funding ends', () => change({ fundingUsd: 0 }), 'a spin', ['KS-5011', 'KS-5002']],
  ['the rate limit falls to 1', () => change({ spinRateLimit: 1 }), 'a spin', ['KS-4291', 'KS-5002']],
];

for (const [name, make, ask, refused] of cases) {
  test(`after a pause in which ${name}, a front end refuses ${ask}`, async () => {
    // The front end has the partner and its games in memory.
    const warm = await spin();
    expect(warm.status, warm.text).toBe(200);
    paused.freeze();
    const answers = await (async () => {
      const changed = await make();
      expect(changed.status).toBeLessThan(300);
      await secondSince(performance.now());
      const asked = Array.from({ length: 8 }, () => asks[ask]!());
      paused.thaw();
      return Promise.all(asked);
    })().finally(() => paused.thaw());
    const codes = answers.map(({ status, body }) => (body as { errorCode?: string }).errorCode ?? status);
    expect(codes.filter((code) => !refused.includes(code as string))).toEqual([]);
    expect(codes).toContain(refused[0]);
  });
}

/** Opens a front end whose Redis can stop to respond. */
async function frontBehind(more: NodeJS.ProcessEnv): Promise<{ front: LoggedService; cable: Cable }> {
  const cable = await proxy(stores.redisUrl);
  const front = await startLogged({ ...stores, redisUrl: cable.url }, { ROLES: 'http', ...more });
  return { front, cable };
}

/** Resolves once a front end has this many requests without a reply of Redis. */
const pending = (front: LoggedService, count: number) =>
  until(async () => (await front.metric('spindle_batch_pending')) === count, `${count} requests wait`);

test('a spin that waits for Redis is refused once its key is revoked', async () => {
  const { front, cable } = await frontBehind({});
  try {
    expect((await front.spin(partner.key, spinBody())).status).toBe(200);
    cable.hold();
    // The first spin occupies the call. The second waits for the call's end.
    const first = front.spin(partner.key, spinBody());
    await pending(front, 1);
    const second = front.spin(partner.key, spinBody());
    await pending(front, 2);
    expect((await revoke()).status).toBe(204);
    await secondSince(performance.now());
    cable.release();
    expect((await first).status).toBe(200);
    expect((await second).body.errorCode).toBe('KS-4003');
  } finally {
    cable.release();
    await front.running.stop();
    await cable.close();
  }
});

test('a spin that was not sent to Redis by its deadline gets KS-5002', async () => {
  const { front, cable } = await frontBehind({ SPIN_DEADLINE_MS: '3000' });
  try {
    expect((await front.spin(partner.key, spinBody())).status).toBe(200);
    cable.hold();
    const isSent = new Promise<void>((resolve) => {
      cable.onRequest = (chunk) => chunk.includes('the-first') && resolve();
    });
    const first = front.spin(partner.key, { ...spinBody(), requestId: 'the-first' });
    await isSent;
    const second = front.spin(partner.key, { ...spinBody(), requestId: 'second' });
    expect((await first).body.errorCode).toBe('KS-4110');
    expect((await second).body.errorCode).toBe('KS-5002');
  } finally {
    cable.release();
    await front.running.stop();
    await cable.close();
  }
});
