/** Tests outages of a store: the response of each operation, the log lines and metrics, and the recovery. */
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BLOCK_OUTCOMES_MIN } from '../../../src/engine/blocks/blockMakers.js';
import type { Answer, TestPartner } from '../../support/client.js';
import { expectWithin } from '../../support/expectWithin.js';
import { load, portOf, spinRequest } from '../../support/load.js';
import { deal, newTable } from '../../support/rounds.js';
import { constants, type LoggedService, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

type Json = Record<string, unknown>;

const WAGER = 0.25;
/** Longest time of a response on a busy machine, in ms. Immediate responses take much less. */
const DEADLINE_MS = 6000;

const failed = (status: number, errorCode: string) => ({ status, body: { status: 'error', errorCode } });

describe('the API during outages of a store', () => {
  let stores: OwnStores;
  let service: LoggedService;
  let partner: TestPartner;
  let gameId: number;
  let table: number;
  let parSheetId: number;

  beforeAll(async () => {
    stores = await ownStores();
    service = await startLogged(stores, {
      ...constants({ authFailureLimit: 1_000_000 }),
      SPIN_DEADLINE_MS: String(DEADLINE_MS),
    });
    partner = await service.newPartner();
    gameId = await service.newGame(partner.key, parSheet('classic-3-reel'), 3 * BLOCK_OUTCOMES_MIN);
    table = await newTable(service, partner.partnerId);
    const list = await service.partner<{ parSheets: { parSheetId: number }[] }>(
      'GET',
      '/par-sheets',
      partner.key,
    );
    parSheetId = list.body.parSheets[0]!.parSheetId;
    expect((await spin()).status).toBe(200);
  });

  afterAll(async () => {
    await service.running.stop();
    await stores.drop();
  });

  const spin = (more: Json = {}) =>
    service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: WAGER, ...more });
  const get = (path: string, key = partner.key) => service.partner('GET', path, key);
  const slug = { slug: 'later', name: 'Later', environment: 'sandbox' };
  const game = () => ({ parSheetId, displayName: 'Later', configName: 'LATER' });
  const upload = () => service.partner('POST', '/par-sheets', partner.key, parSheet('penny-sub-cent'));

  const late = <T>(answer: Promise<T>, seconds: number): Promise<T | string> => {
    let timer: NodeJS.Timeout;
    const none = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`no answer in ${seconds} s`), seconds * 1000);
    });
    return Promise.race([answer, none]).finally(() => clearTimeout(timer));
  };

  /**
   * Checks that the response is this error, that a log line has its correlation id, and that a metric counts
   * it.
   */
  async function expectFault(ask: () => Promise<Answer>, status: number, code: string): Promise<Answer> {
    const series = `spindle_errors_total{code="${code}"}`;
    const before = await service.metric(series);
    const answer = await ask();
    expect(answer).toMatchObject(failed(status, code));
    expect(await service.metric(series)).toBeGreaterThan(before);
    const requestId = answer.headers.get('x-request-id');
    expect(requestId).not.toBeNull();
    expect(
      service.lines.find((line) => line.requestId === requestId),
      code,
    ).toBeDefined();
    if (status === 503) expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    return answer;
  }

  test('says once that LOG_KEY is not set', () => {
    expect(service.lines.filter(({ msg }) => String(msg).includes('LOG_KEY is not set'))).toHaveLength(1);
  });

  test('without Postgres, each operation fails with its own code, spins with cached keys are dealt, and all operations recover', async () => {
    await stores.postgres.stop();
    const faults = await service.metric('spindle_faults_total{operation="registerGame"}');
    await expectFault(() => get('/version', `ks_${'A'.repeat(43)}`), 500, 'KS-5004');
    await expectFault(() => service.partner('POST', '/games', partner.key, game()), 500, 'KS-5005');
    await expectFault(upload, 500, 'KS-5006');
    await expectFault(() => service.operator('POST', '/partners', slug), 500, 'KS-5007');
    await expectFault(
      () => service.operator('POST', `/partners/${partner.partnerId}/keys`, {}),
      500,
      'KS-5008',
    );
    await expectFault(() => get('/players/p/spins'), 503, 'KS-5002');
    await expectFault(() => get('/games'), 503, 'KS-5002');
    await expectFault(() => spin({ gameId: 2_000_000_000 }), 503, 'KS-5002');
    expect(await service.metric('spindle_faults_total{operation="registerGame"}')).toBe(faults + 1);
    const spun = await spin({ requestId: 'meanwhile' });
    expect(spun.status).toBe(200);
    expect((await get('/players/p')).body).toMatchObject(spun.body.balance as Json);
    // The first block is dealt out, and no other block can be made. The loaded blocks are still counted, so
    // that nobody is told that the game has no outcomes.
    let due = BLOCK_OUTCOMES_MIN;
    const body = JSON.stringify({ gameId, playerId: 'q', wagerUsd: WAGER });
    await load({
      port: portOf(service.base),
      connections: 16,
      next: () => (due-- > 0 ? spinRequest(partner.key, body) : undefined),
      onAnswer: ({ status, text }) => expect(status, text).toBe(200),
    });
    await until(
      async () => service.lines.some(({ msg }) => msg === 'block replenishment failed, will retry'),
      'the next block could not be made',
    );
    const ready = await service.metric(`spindle_queue_outcomes{game="${gameId}"}`);
    expect(ready).toBeGreaterThan(0);
    expect(ready).toBeLessThanOrEqual(2 * BLOCK_OUTCOMES_MIN);
    // Load balancers keep the process, because it deals on.
    expect((await service.request('GET', '/readyz')).status).toBe(200);
    expect(await service.request('GET', '/statusz')).toMatchObject({
      status: 503,
      body: { status: 'degraded', missing: [], waiting: [expect.stringContaining('Postgres')] },
    });

    await stores.postgres.start();
    await until(
      async () => (await service.request('GET', '/statusz')).status === 200,
      'the service is ready again',
    );
    expect((await upload()).status).toBe(201);
    expect((await service.partner('POST', '/games', partner.key, game())).status).toBe(201);
    expect((await service.operator('POST', '/partners', slug)).status).toBe(201);
    expect((await get('/version', `ks_${'A'.repeat(43)}`)).status).toBe(401);
    await until(async () => (await get(`/spins/${spun.body.spinId}`)).status === 200, 'the spin is booked');
  });

  async function failWithoutRedis(): Promise<void> {
    const started = performance.now();
    await expectFault(() => spin({ requestId: 'away' }), 503, 'KS-5002');
    await expectFault(() => spin(), 503, 'KS-5002');
    await expectFault(() => get('/players/p'), 503, 'KS-5002');
    await expectFault(upload, 503, 'KS-5002');
    expectWithin(performance.now() - started, DEADLINE_MS);
    await expectFault(() => service.operator('GET', `/games/${gameId}`), 503, 'KS-5002');
    expect(await get('/version', 'ks_wrong')).toMatchObject(failed(401, 'KS-4002'));
    expect((await service.request('GET', '/readyz')).status).toBe(503);
    expect(await service.request('GET', '/statusz')).toMatchObject({
      status: 503,
      body: {
        status: 'not ready',
        missing: ['Redis does not respond'],
        problems: [{ name: 'redis-away', effect: 'SPINS_REFUSED', message: 'Redis does not respond' }],
      },
    });
    expect(await service.metric('spindle_problem{problem="redis-away"}')).toBe(1);
    expect(await service.metric('spindle_problem{problem="postgres-away"}')).toBe(0);
  }

  test('without Redis, spins fail with KS-5002 at once and bind no requestId, and later all operations recover', async () => {
    await until(async () => {
      const { body } = await service.request<{ problems: unknown[] }>('GET', '/statusz');
      return body.problems.length === 0;
    }, 'the problems of the test before are over');
    await stores.redis.stop();
    try {
      await failWithoutRedis();
    } finally {
      await stores.redis.start();
    }
    await until(
      async () => (await service.request('GET', '/statusz')).status === 200,
      'the service is ready again',
    );
    const spun = await spin({ requestId: 'away' });
    expect(spun.status).toBe(200);
    expect(spun.headers.get('idempotent-replayed')).toBeNull();
    await until(async () => (await get(`/spins/${spun.body.spinId}`)).status === 200, 'the spin is booked');
  });

  test('with a paused Redis, a spin with a requestId gets KS-4110, and its retry gets the result', async () => {
    await stores.redis.freeze();
    try {
      const [asked, anonymous] = await Promise.all([spin({ requestId: 'silent' }), spin()]);
      expect(asked).toMatchObject(failed(409, 'KS-4110'));
      expect(Number(asked.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(anonymous).toMatchObject(failed(503, 'KS-5002'));
    } finally {
      await stores.redis.thaw();
    }
    let again = await spin({ requestId: 'silent' });
    await until(async () => {
      if (again.status !== 200) again = await spin({ requestId: 'silent' });
      return again.status === 200;
    }, 'the original result is read');
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  test('with a paused Redis, wrong keys and look-ups are answered', async () => {
    await stores.redis.freeze();
    try {
      const [wrong, missing, look] = await Promise.all([
        late(get('/version', 'ks_wrong'), 60),
        late(service.request('GET', '/api/partner/v1/version'), 60),
        late(service.operator('GET', `/games/${gameId}`), 60),
      ]);
      expect(look).toMatchObject(failed(503, 'KS-5002'));
      expect(wrong).toMatchObject(failed(401, 'KS-4002'));
      expect(missing).toMatchObject(failed(401, 'KS-4001'));
    } finally {
      await stores.redis.thaw();
    }
    await until(async () => (await spin()).status === 200, 'spins are dealt again');
  });

  test('with the disk of Postgres full, /statusz says so and not that Postgres is away', async () => {
    const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
    await sql.unsafe(`
      CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
      CREATE TRIGGER full_disk BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION full_disk()`);
    expect((await spin()).status).toBe(200);
    // The health checks may still show what was wrong in the test before.
    await until(async () => {
      const { text } = await service.request('GET', '/statusz');
      return text.includes('"name":"postgres-short"') && text.includes('"status":"degraded"');
    }, 'the shortage is named');
    expect(await service.request('GET', '/statusz')).toMatchObject({
      status: 503,
      body: {
        status: 'degraded',
        waiting: ['The disk of Postgres is full: could not extend file: No space left on device'],
      },
    });
    await sql.unsafe('DROP FUNCTION full_disk CASCADE');
    await sql.end();
    await until(
      async () => (await service.request('GET', '/statusz')).status === 200,
      'the ledger is written again',
    );
  });

  test('with a paused Postgres, operations that need it fail within the deadline', async () => {
    await stores.postgres.freeze();
    try {
      const [unknownKey, stored, round, unnamed] = await Promise.all([
        late(get('/version', 'ks_unknown'), 60),
        late(upload(), 60),
        late(deal(service, partner.key, table, 'waits', 'round'), 60),
        late(deal(service, partner.key, table, 'nameless'), 60),
      ]);
      // A deal of a round is answered only once it is committed, so a deal that is not committed in time may
      // still have been made.
      expect(round).toMatchObject(failed(409, 'KS-4110'));
      expect(unnamed).toMatchObject(failed(503, 'KS-5002'));
      expect((await spin()).status).toBe(200);
      expect(stored).toMatchObject(failed(500, 'KS-5006'));
      expect(unknownKey).toMatchObject(failed(500, 'KS-5004'));
    } finally {
      await stores.postgres.thaw();
    }
    await until(
      async () => (await service.request('GET', '/statusz')).status === 200,
      'the service is ready again',
    );
    let round = await deal(service, partner.key, table, 'waits', 'round');
    await until(async () => {
      if (round.status !== 201) round = await deal(service, partner.key, table, 'waits', 'round');
      return round.status === 201;
    }, 'the round is told');
    expect(round.headers.get('idempotent-replayed')).toBe('true');
  });
});
