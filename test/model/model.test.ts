/**
 * The service against the reference model of test/model/: random partners and their operator doing random things.
 * MODEL_RUNS says how many scenarios are played, MODEL_SEED which.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { OPERATOR_KEY } from '../support/client.js';
import { type Cable, proxy } from '../support/proxy.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { constants, environment, spawnService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { type ModelOptions, runModel } from './run.js';
import { runTables } from './table.js';

const RUNS_DEFAULT = 20;
const RUNS = Number(process.env.MODEL_RUNS ?? RUNS_DEFAULT);
/** Where the machine is busy with other things fewer runs will do, unless their number was asked for. */
const FOR_MS = process.env.MODEL_RUNS === undefined ? 40_000 : Number.POSITIVE_INFINITY;
const SEED = Number(process.env.MODEL_SEED ?? 1);

let stores: TestStores;
let cable: Cable;
/** Two front ends, and one whose connections to Redis can be cut. */
let services: [ServerProcess, ServerProcess, ServerProcess];

beforeAll(async () => {
  stores = await freshStores();
  cable = await proxy(stores.redisUrl);
  const env = (more: NodeJS.ProcessEnv = {}) =>
    environment(stores, {
      ...constants({ authFailureLimit: 1_000_000, flushIntervalMs: 10, catalogPollMs: 50 }),
      // Every run crosses releases of request ids.
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
  await stores.drop();
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

// At once: most of the time the one that goes into the next minute waits for it.
describe.concurrent('the service does what the model allows', { timeout: 600_000 + RUNS * 2000 }, () => {
  test('whatever partners and their operator do', async () => {
    const { runs, seen } = await runModel(options(services.slice(0, 2), RUNS));
    // A model that meets nothing proves nothing.
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

  test('from one minute into the next', async () => {
    const { seen } = await runModel({ ...options(services.slice(0, 2), 10), crossesMinute: true });
    const outcomes = [...seen.keys()];
    for (const outcome of ['spin 200', 'spin 429 KS-4291', '429 KS-4292']) {
      expect(outcomes).toContainEqual(expect.stringContaining(outcome));
    }
  });

  test('while connections between service and Redis are cut', async () => {
    let cuts = 0;
    const cutStore = (): void => {
      cuts++;
      cable.cut();
    };
    // All of them, however long they take: which of them cut is the seed's to say.
    const chosen = { ...options(services.slice(2), Math.ceil(RUNS / 4)), forMs: Number.POSITIVE_INFINITY };
    await runModel({ ...chosen, cutStore });
    expect(cuts).toBeGreaterThan(0);
  });

  test('whatever players and the operator do at a blackjack table', async () => {
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
