/**
 * Tests the service against the reference model of test/model/ with random actions of partners and their
 * operator. MODEL_RUNS sets the number of scenarios and MODEL_SEED selects them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { world } from '../setup/world.js';
import { OPERATOR_KEY } from '../support/client.js';
import { type Cable, proxy } from '../support/proxy.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { constants, environment, spawnService } from '../support/service.js';
import { type ModelOptions, runModel } from './run.js';
import { runTables } from './table.js';

const RUNS_DEFAULT = 20;
const RUNS = Number(process.env.MODEL_RUNS ?? RUNS_DEFAULT);
/**
 * Time limit in ms on a busy machine, after which no further scenario starts. It does not apply if MODEL_RUNS
 * is set.
 */
const FOR_MS = process.env.MODEL_RUNS === undefined ? 40_000 : Number.POSITIVE_INFINITY;
const SEED = Number(process.env.MODEL_SEED ?? 1);

const { stores } = world();
let cable: Cable;
/** Two front ends, and a third whose connections to Redis can be cut. */
let services: [ServerProcess, ServerProcess, ServerProcess];

beforeAll(async () => {
  cable = await proxy(stores.redisUrl);
  const env = (more: NodeJS.ProcessEnv = {}) =>
    environment(stores, {
      ...constants({ authFailureLimit: 1_000_000, flushIntervalMs: 10, catalogPollMs: 50 }),
      // A window of one second makes the service release request ids during every scenario.
      REQUEST_ID_WINDOW_S: '1',
      ...more,
    });
  const first = await spawnService(env());
  services = [
    first,
    ...(await Promise.all([
      spawnService(env({ ROLES: 'http' })),
      spawnService(env({ ROLES: 'http', REDIS_URL: cable.url })),
    ])),
  ];
});

afterAll(async () => {
  await Promise.all(services.map((service) => service.end()));
  await cable.close();
});

const options = (on: readonly ServerProcess[], runs: number): ModelOptions => ({
  bases: on.map((service) => service.client.base),
  operatorKey: OPERATOR_KEY,
  databaseUrl: stores.databaseUrl,
  redisUrl: stores.redisUrl,
  runs,
  seed: SEED,
  forMs: FOR_MS,
});

// The tests run concurrently, because the test across a minute boundary mostly waits.
describe.concurrent('the service behaves as the reference model allows', {
  timeout: 600_000 + RUNS * 2000,
}, () => {
  test('answers random requests of partners and their operator as the reference model allows', async () => {
    const { runs, seen } = await runModel(options(services.slice(0, 2), RUNS));
    // The scenarios must reach every wanted response, or else this test proves nothing.
    const wanted = [
      'spin 200',
      'spin 200 replayed',
      'spin cut',
      'spin 400 KS-4103',
      'spin 400 KS-4202',
      'spin 400 KS-4225',
      'spin 401 KS-4003',
      'spin 401 KS-4005',
      'spin 403 KS-4006',
      'spin 409 KS-4111',
      'spin 429 KS-4291',
      'spin 503 KS-5011',
      'choose 200',
      'choose 400 KS-4101',
      'choose 403 KS-4006',
      'choose 404 KS-4215',
      'fixed 400 KS-4101',
      'player 200',
      'player 404 KS-4204',
      'page 200',
      'lookup 200',
      'lookup 404 KS-4215',
    ];
    if (runs >= RUNS_DEFAULT) {
      expect(wanted.filter((name) => !seen.has(name))).toEqual([]);
      expect([...seen.keys()]).toContainEqual(expect.stringContaining('429 KS-4292'));
    }
  });

  test('answers random requests across a minute boundary of the rate limits as the reference model allows', async () => {
    const { seen } = await runModel({ ...options(services.slice(0, 2), 10), crossesMinute: true });
    const outcomes = [...seen.keys()];
    for (const outcome of ['spin 200', 'spin 429 KS-4291', '429 KS-4292']) {
      expect(outcomes).toContainEqual(expect.stringContaining(outcome));
    }
  });

  test('answers random requests as the reference model allows while its Redis connections are cut', async () => {
    let cuts = 0;
    const cutStore = (): void => {
      cuts++;
      cable.cut();
    };
    // All scenarios are played without a time limit, because the seed determines which of them cut
    // connections.
    const chosen = { ...options(services.slice(2), Math.ceil(RUNS / 4)), forMs: Number.POSITIVE_INFINITY };
    await runModel({ ...chosen, cutStore });
    expect(cuts).toBeGreaterThan(0);
  });

  test('answers random actions at a blackjack table as the reference model allows', async () => {
    const { bases, operatorKey, databaseUrl, seed } = options(services.slice(0, 2), RUNS);
    const seen = await runTables({ bases, operatorKey, databaseUrl, seed, runs: RUNS, forMs: FOR_MS });
    const wanted = [
      'deal 201',
      'deal 201 replayed',
      'deal 400 KS-4103',
      'deal 409 KS-4111',
      'deal 409 KS-4222',
      'action 200',
      'action 200 replayed',
      'action 404 KS-4221',
      'action 409 KS-4223',
      'action 409 KS-4224',
      'close 200',
      'void 200',
      'timeout',
    ];
    if (seen.get('scenario')! >= RUNS_DEFAULT) expect(wanted.filter((name) => !seen.has(name))).toEqual([]);
  });
});
