/**
 * Tests ACK=ledger, under which a spin is answered only once its row is committed in Postgres, together with
 * ACK=redis.
 */

import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { playerField, playersKey } from '../../../src/engine/redis/keys.js';
import { freshStores } from '../../setup/freshStores.js';
import { blocksFor } from '../../support/api.js';
import type { TestPartner } from '../../support/client.js';
import { expectWithin } from '../../support/expectWithin.js';
import { load, portOf, spinRequest } from '../../support/load.js';
import { proxy } from '../../support/proxy.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, type LoggedService, spawnService, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import { type Asked, codeOf, Witness } from '../../support/witness.js';

const DEADLINE_MS = 8000;
/**
 * Time in ms that a busy machine may take for a response that does not wait for the deadline. A response that
 * waits for the deadline may exceed it by the same time.
 */
const SLACK_MS = 5000;

const LEDGER = { CELLS: '1', ACK: 'ledger', SPIN_DEADLINE_MS: String(DEADLINE_MS) };

const timed = async <T>(work: Promise<T>): Promise<{ value: T; ms: number }> => {
  const started = performance.now();
  const value = await work;
  return { value, ms: performance.now() - started };
};

describe('two front ends with ACK=ledger and one with ACK=redis', () => {
  let stores: OwnStores;
  let worker: LoggedService;
  let fronts: [LoggedService, LoggedService];
  let early: LoggedService;
  let partner: TestPartner;
  let gameId: number;
  let redis: Redis;
  let sql: postgres.Sql;
  let witness: Witness;

  beforeAll(async () => {
    stores = await ownStores();
    worker = await startLogged(stores, LEDGER);
    fronts = [worker, await startLogged(stores, { ...LEDGER, ROLES: 'http' })];
    early = await startLogged(stores, { CELLS: '1', ROLES: 'http', ACK: 'redis' });
    partner = await worker.newPartner();
    gameId = await worker.newGame(partner.key, parSheet('classic-3-reel'));
    redis = new Redis(stores.redisUrl, { protocol: 2 });
    redis.on('error', () => {});
    sql = postgres(stores.databaseUrl, { max: 8 });
  });

  beforeEach(() => {
    witness = new Witness(stores, partner, gameId);
    return () => witness.close();
  });

  afterEach(async () => {
    // Retries determine the results of spins in doubt. Every other spin must be in the ledger as it was
    // answered.
    await witness.resolve(fronts[1]);
    await witness.flushed(worker);
    expect((await witness.judge()).wrong).toEqual([]);
  });

  afterAll(async () => {
    redis.disconnect();
    await sql.end();
    await early.running.stop();
    await fronts[1].running.stop();
    await worker.running.stop();
    await stores.drop();
  });

  const isCommitted = async ({ playerId }: Asked): Promise<boolean> =>
    (await sql`SELECT 1 FROM ledger WHERE kind = 1 AND player_id = ${playerId}`).length === 1;
  const isDealt = async ({ playerId }: Pick<Asked, 'playerId'>): Promise<boolean> =>
    (await redis.hexists(playersKey(0), playerField(partner.partnerId, playerId))) === 1;
  const listeners = async (): Promise<number> =>
    ((await redis.pubsub('NUMSUB', 'spindle:booked')) as [string, number])[1];
  const dealsAgain = (): Promise<void> =>
    until(async () => {
      const probes = await Promise.all([...fronts, early].map((front) => witness.spin(front, true)));
      return probes.every((probe) => codeOf(probe) === '200');
    }, 'all front ends deal again');

  test('with ACK=ledger, the row of every spin is committed when its response arrives', async () => {
    const rounds = await Promise.all(
      Array.from({ length: 400 }, async (_, i) => {
        const asked = await witness.spin(fronts[i % 2]!, i % 3 !== 0);
        return { code: codeOf(asked), isCommitted: await isCommitted(asked) };
      }),
    );
    const answered = rounds.filter(({ code }) => code === '200');
    expect(answered.filter(({ isCommitted: isThere }) => !isThere)).toEqual([]);
    // On a busy machine a flush may take so long that other spins are refused meanwhile.
    expect(rounds.filter(({ code }) => code !== '200' && code !== 'KS-5002')).toEqual([]);
    expect(answered.length).toBeGreaterThan(0);
    // Single spins are checked as well, because without concurrent spins no queue delays the test's check of
    // the ledger.
    for (let i = 0; i < 40; i++) {
      const asked = await witness.spin(fronts[i % 2]!, true);
      if (codeOf(asked) === 'KS-5002') continue;
      expect([codeOf(asked), await isCommitted(asked)]).toEqual(['200', true]);
    }
  });

  test('with ACK=ledger, a paused Postgres delays all responses, also those of replays, until it resumes', async () => {
    await stores.postgres.freeze();
    try {
      const first = witness.next(true);
      const answers: string[] = [];
      const ask = async (front: LoggedService): Promise<void> => {
        const answer = await witness.retry(front, first);
        answers.push(`${answer.status} ${answer.headers.get('idempotent-replayed')}`);
      };
      // Both requests go to the first front end at once, because a front end refuses new spins after one
      // second without the ledger.
      const asking = [ask(fronts[0]), ask(fronts[0])];
      await until(() => isDealt(first), 'the spin is dealt');
      asking.push(ask(fronts[1]));
      for (const [front, count] of [
        [fronts[0], 2],
        [fronts[1], 1],
      ] as const) {
        await until(
          async () => (await front.metric('spindle_batch_pending')) === count,
          'the replays wait as well',
        );
      }
      expect(answers).toEqual([]);
      await stores.postgres.thaw();
      await Promise.all(asking);
      expect(answers.sort()).toEqual(['200 null', '200 true', '200 true']);
    } finally {
      await stores.postgres.thaw();
    }
  });

  test('with ACK=ledger, a long pause of Postgres leaves waiting spins in doubt and refuses new ones; ACK=redis deals on', async () => {
    await dealsAgain();
    await stores.postgres.freeze();
    const waiting: Promise<{ value: Asked; ms: number }>[] = [];
    try {
      for (const front of fronts) {
        for (const isNamed of [true, false, true]) waiting.push(timed(witness.spin(front, isNamed)));
      }
      const isOver = Promise.all(waiting);
      let over = false;
      void isOver.then(() => {
        over = true;
      });

      // After about one second without the ledger, a front end deals no spin that would have to wait.
      const turnedAway: Asked[] = [];
      const lateComers: Promise<unknown>[] = [];
      const started = performance.now();
      const isTurnedAway = async (front: LoggedService): Promise<boolean> => {
        const asked = witness.next(true);
        lateComers.push(witness.retry(front, asked));
        await until(
          async () => asked.answers.length > 0 || (await isDealt(asked)),
          'it is answered or dealt',
        );
        if (asked.answers.length === 0) return false;
        turnedAway.push(asked);
        return true;
      };
      await until(
        async () => (await isTurnedAway(fronts[0])) && (await isTurnedAway(fronts[1])),
        'spins are refused',
      );
      const stalledAfterMs = performance.now() - started;
      expect(over).toBe(false);
      expect(stalledAfterMs).toBeGreaterThan(500);
      const areRefused = async (): Promise<void> => {
        for (const front of fronts) {
          for (const isNamed of [true, false]) {
            const { value, ms } = await timed(witness.spin(front, isNamed));
            turnedAway.push(value);
            expectWithin(ms, SLACK_MS);
          }
        }
        expect(turnedAway.map(codeOf)).toEqual(turnedAway.map(() => 'KS-5002'));
        expect(await Promise.all(turnedAway.map(isDealt))).toEqual(turnedAway.map(() => false));
      };
      await areRefused();

      const other = await timed(witness.spin(early, true));
      expect(codeOf(other.value)).toBe('200');
      expectWithin(other.ms, SLACK_MS);

      for (const { value, ms } of await isOver) {
        expect(codeOf(value)).toBe(value.requestId === undefined ? 'KS-5002' : 'KS-4110');
        expectWithin(ms, DEADLINE_MS + SLACK_MS);
      }
      await Promise.all(lateComers);
      // No request is waiting any more, but the spins that timed out are not committed yet, so new spins are
      // still refused.
      await areRefused();
    } finally {
      await stores.postgres.thaw();
    }
    const dealtBefore = witness.asked.length;
    await dealsAgain();
    await witness.resolve(fronts[0]);
    const inDoubt = witness.asked.slice(0, dealtBefore).filter(({ answers }) => answers.length > 1);
    expect(inDoubt.length).toBeGreaterThan(3);
    await witness.flushed(worker);
    expect((await witness.judge()).wrong).toEqual([]);
  });

  test('with ACK=ledger, front ends answer spins although the announcements of commits are lost', async () => {
    await dealsAgain();
    const all = await listeners();
    for (let i = 0; i < 5; i++) {
      expect(await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')).toBeGreaterThan(0);
      const { value, ms } = await timed(witness.spin(fronts[i % 2]!, true));
      expect([codeOf(value), await isCommitted(value)]).toEqual(['200', true]);
      expectWithin(ms, SLACK_MS);
      await until(async () => (await listeners()) === all, 'every front end listens again');
    }
    // A new front end never receives the announcements of commits before its start, but must still answer
    // replays of the spins that were committed then.
    const asked = await witness.spin(fronts[0], true);
    const late = await startLogged(stores, { ...LEDGER, ROLES: 'http' });
    try {
      const { value, ms } = await timed(witness.retry(late, asked));
      expect([value.status, value.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
      expectWithin(ms, SLACK_MS);
    } finally {
      await late.running.stop();
    }
  });

  test('with ACK=ledger, a front end resubscribes after its subscription is cut several times during setup', async () => {
    const before = await listeners();
    const cable = await proxy(stores.redisUrl);
    const { databaseUrl } = stores;
    const behind = await startLogged({ redisUrl: cable.url, databaseUrl }, { ...LEDGER, ROLES: 'http' });
    try {
      let cuts = 0;
      cable.beforeRequest = (chunk) => {
        if (cuts >= 5 || !/subscribe/i.test(chunk.toString('latin1'))) return;
        cuts++;
        cable.cut();
      };
      cable.cut();
      await until(() => cuts === 5, 'five subscriptions were cut');
      await until(async () => (await listeners()) === before + 1, 'it listens again');
      await until(async () => codeOf(await witness.spin(behind, true)) === '200', 'it answers spins');
    } finally {
      await behind.running.stop();
      await cable.close();
    }
  });

  test('with ACK=ledger, a killed Redis never makes a front end answer a spin that is not in the ledger', async () => {
    await dealsAgain();
    for (let round = 0; round < 2; round++) {
      const spins = Array.from({ length: 60 }, (_, i) => witness.spin(fronts[i % 2]!, i % 3 !== 0));
      await until(() => isDealt(witness.asked.at(-60)!), 'spins are under way');
      await stores.redis.kill();
      await Promise.all(spins);
      await dealsAgain();
    }
  });
});

describe('a worker that is killed between commit and announcement under ACK=ledger', () => {
  let stores: TestStores;
  let killed: ServerProcess;
  let front: LoggedService;
  let second: LoggedService;
  let books: postgres.Sql;
  let witness: Witness;

  beforeAll(async () => {
    stores = await freshStores();
    books = postgres(stores.databaseUrl, { max: 1 });
    const settings = { ...LEDGER, SPIN_DEADLINE_MS: '15000' };
    killed = await spawnService(
      environment(stores, { ...settings, ROLES: 'worker', FAILPOINT: 'flush.committed' }),
    );
    front = await startLogged(stores, { ...settings, ROLES: 'http' });
    second = await startLogged(stores, { ...settings, ROLES: 'worker' });
    const partner = await front.newPartner();
    witness = new Witness(stores, partner, await front.newGame(partner.key, parSheet('classic-3-reel')));
  });

  afterAll(async () => {
    await witness.close();
    await books.end();
    await killed.end('SIGKILL');
    await front.running.stop();
    await second.running.stop();
    await stores.drop();
  });

  test('spins that a killed worker committed are answered, and the other spins are committed by the next owner', async () => {
    expect(await second.metric('spindle_cells_owned')).toBe(0);
    const [{ owner }] = (await books`SELECT owner FROM cells`) as unknown as [{ owner: string }];
    const first = await timed(witness.spin(front, true));
    expect(codeOf(first.value)).toBe('200');
    expectWithin(first.ms, SLACK_MS);
    expect(await killed.end('SIGKILL')).toBe('SIGKILL');
    expect(await witness.booked(first.value.playerId)).toBe(1);
    const owned = await second.metric('spindle_cells_owned');
    // The lease of the killed worker lasts for seconds, but on a busy machine it may have expired already.
    const [cell] = await books<{ owner: string; is_held: boolean }[]>`
      SELECT owner, lease_until > now() AS is_held FROM cells`;
    if (cell!.is_held && cell!.owner === owner) expect(owned).toBe(0);
    // No worker writes to the cell until the lease of the killed worker has expired.
    const rest = await timed(
      Promise.all(Array.from({ length: 20 }, (_, i) => witness.spin(front, i % 2 === 0))),
    );
    expect(rest.value.map(codeOf)).toEqual(rest.value.map(() => '200'));
    expectWithin(rest.ms, 15_000);
    expect(await second.metric('spindle_cells_owned')).toBe(1);
    await witness.flushed(front);
    expect((await witness.judge()).wrong).toEqual([]);
  });
});

/** Measures how much slower ACK=ledger is than ACK=redis. The result is reported but not asserted. */
describe('throughput of ACK=ledger and ACK=redis', () => {
  const CONNECTIONS = 64;
  const SPINS = 3000;
  let stores: TestStores;
  let services: ServerProcess[];

  beforeAll(async () => {
    stores = await freshStores();
    services = [
      await spawnService(environment(stores, LEDGER)),
      await spawnService(environment(stores, { ...LEDGER, ACK: 'redis', ROLES: 'http' })),
    ];
  });

  afterAll(async () => {
    for (const service of services.reverse()) await service.end();
    await stores.drop();
  });

  test('measures the throughput of ACK=ledger and ACK=redis in alternating runs', async ({ annotate }) => {
    const { client } = services[0]!;
    const spins = 4 * SPINS;
    const partner = await client.newPartner({ minReadyBlocks: blocksFor(spins) });
    const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'), spins);
    const run = async (service: ServerProcess, name: string): Promise<number> => {
      let sent = 0;
      const codes: Record<string, number> = {};
      const latencies: number[] = [];
      const sentAt = new Map<Buffer, number>();
      const started = performance.now();
      const cut = await load({
        port: portOf(service.client.base),
        connections: CONNECTIONS,
        next: () => {
          if (sent >= SPINS) return undefined;
          const requestId = `${name}-${sent++}`;
          const request = spinRequest(
            partner.key,
            JSON.stringify({ gameId, playerId: `p${sent % 500}`, wagerUsd: 0.25, requestId }),
          );
          sentAt.set(request, performance.now());
          return request;
        },
        onAnswer: ({ status, text }, request) => {
          const code = status === 200 ? '200' : (JSON.parse(text) as { errorCode: string }).errorCode;
          codes[code] = (codes[code] ?? 0) + 1;
          latencies.push(performance.now() - sentAt.get(request)!);
          sentAt.delete(request);
        },
      });
      const seconds = (performance.now() - started) / 1000;
      const { '200': answered = 0, 'KS-5002': refused = 0, 'KS-4110': late = 0, ...others } = codes;
      // On a busy machine a flush may take so long that other spins are refused or in doubt meanwhile.
      expect([cut, answered + refused + late, others]).toEqual([0, SPINS, {}]);
      expect(answered).toBeGreaterThan(0);
      latencies.sort((a, b) => a - b);
      const at = (share: number): string => latencies[Math.floor(latencies.length * share)]!.toFixed(1);
      await annotate(
        `${name}: ${Math.round(answered / seconds)} spins/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${refused} refused`,
      );
      return answered / seconds;
    };
    for (const turn of [1, 2]) {
      await run(services[0]!, `ledger ${turn}`);
      await run(services[1]!, `redis ${turn}`);
    }
  });
});
