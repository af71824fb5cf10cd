/**
 * Makes copies of the build with one deliberate fault each. The audit or the model must find every fault,
 * because a check that never finds anything proves nothing.
 */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { audit } from '../../src/books/audit/audit.js';
import type { AuditReport, CheckName } from '../../src/books/audit/report.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Sql } from '../../src/postgres/connection.js';
import { ModelFailure, runModel } from '../model/run.js';
import { freshStores } from '../setup/freshStores.js';
import { OPERATOR_KEY } from '../support/client.js';
import { RULES, setUp } from '../support/communal.js';
import { each, load, portOf, spinRequest } from '../support/load.js';
import { type OpenNodes, openNodes } from '../support/redis.js';
import { ROOT } from '../support/root.js';
import { constants, environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';
import { COMMUNAL_MUTATIONS } from './communalMutations.js';
import { DEALING_MUTATIONS, FOUND_BY_THE_MODEL } from './dealingMutations.js';
import { MOVE_MUTATIONS, moveWhile, moveWhileStopped } from './moveMutations.js';
import { brokenBuild, type Going } from './mutant.js';
import { RELEASE_MUTATIONS } from './releaseMutations.js';

const SPINS = 600;
const PLAYERS = 20;
/**
 * A communal progressive that fires often, has a community smaller than the number of players, and divides
 * its amounts unevenly.
 */
const BONUS = {
  ...RULES,
  communitySize: 7,
  tiers: [
    { tierLevel: 1, tierName: 'Mini', triggerAtSpins: 20, amountUsd: '0.001003' },
    { tierLevel: 2, tierName: 'Grand', triggerAtSpins: 60, amountUsd: '0.02' },
  ],
};

let stores: TestStores;
let direct: Redis;
let redis: OpenNodes;
let sql: Sql;

async function open(): Promise<void> {
  stores = await freshStores();
  direct = new Redis(stores.redisUrl, { protocol: 2 });
  redis = await openNodes(stores.redisUrl);
  sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
}

async function close(): Promise<void> {
  direct.disconnect();
  redis.close();
  await sql.end();
  await stores.drop();
}

/** Sends spins to a service with a given build, repeats some of them, and returns the report of the audit. */
async function auditAfterSpins(
  root: string,
  { isWiped, isReleased, isMoved, isStopped }: Going,
): Promise<AuditReport> {
  const start = (settings: NodeJS.ProcessEnv) => spawnService(environment(stores, settings), [], root);
  const service = await start(isReleased ? { REQUEST_ID_WINDOW_S: '1' } : {});
  try {
    const { client } = service;
    const partner = await client.newPartner({ openingBalanceUsd: 100, cell: 0 });
    const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
    const raffle = await client.operator<{ gameConfigId: number }>(
      'POST',
      `/partners/${partner.partnerId}/raffles`,
      {
        displayName: 'A raffle',
        configName: 'MUTATION',
        ticketPriceUsd: 0.25,
        poolSize: SPINS,
        prizes: [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 1, count: SPINS / 10 }],
      },
    );
    const isOpen = async (): Promise<boolean> => {
      const { body } = await client.partner('GET', `/games/${raffle.body.gameConfigId}/pool`, partner.key);
      return body.status === 'ACTIVE';
    };
    await until(isOpen, 'the raffle is open');
    await setUp(client, gameId, BONUS);
    const port = portOf(client.base);
    const [{ cell }] = (await sql<{ cell: number }[]>`
      SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`) as [{ cell: number }];
    const hasNoneBound = async (): Promise<boolean> => (await direct.keys(`{c${cell}}:idem:*`)).length === 0;
    const play = async (name: string, at = port): Promise<void> => {
      const numbers = Array.from({ length: SPINS / 2 }, (_, i) => i);
      const request = (i: number): Buffer => {
        const game = i % 5 === 1 ? raffle.body.gameConfigId : gameId;
        const body = { gameId: game, playerId: `p${i % PLAYERS}`, wagerUsd: 0.25, requestId: `${name}-${i}` };
        return spinRequest(partner.key, JSON.stringify(body));
      };
      const again = numbers.filter((i) => i % 10 === 0);
      // Some spins are repeated at once and some later.
      for (const some of [numbers.flatMap((i) => (i % 10 === 0 ? [i, i] : [i])), again]) {
        // The responses are ignored, because the audit must find the fault in the stores.
        await load({ port: at, connections: 8, next: each(some, request), onAnswer: () => {} });
        if (isReleased) await until(hasNoneBound, 'Redis holds no requestId any more');
      }
    };
    const isQuiet = async (): Promise<boolean> =>
      (await direct.xlen('{c0}:outbox')) + (await direct.xlen('{c1}:outbox')) === 0 ||
      (await sql<object[]>`SELECT 1 FROM cells WHERE halted IS NOT NULL`).length > 0;
    await play('first');
    await until(isQuiet, 'all that will be booked is booked');
    if (isWiped) {
      await direct.flushdb();
      await until(async () => (await client.request('GET', '/statusz')).status === 200, 'it is rebuilt');
      await client.newGame(partner.key, parSheet('classic-3-reel'));
    }
    if (isMoved) await moveWhile(client, partner.partnerId, 1, play);
    if (isStopped)
      await moveWhileStopped(client, partner.partnerId, play, () =>
        start({ ROLES: 'http', ...constants({ restrictionReadMs: 600 }) }),
      );
    await play(isMoved ? 'first' : 'second');
    await until(isQuiet, 'all that will be booked is booked');
    return await audit(sql, redis.nodes, { limit: 3, onProgress: () => {} });
  } finally {
    await service.end('SIGKILL');
  }
}

const guilty = (report: AuditReport): CheckName[] =>
  report.checks.filter(({ violations }) => violations > 0).map(({ name }) => name);

describe('the audit of a build without a fault', () => {
  beforeAll(open);
  afterAll(close);

  test.each([{}, { isWiped: true }, { isReleased: true }, { isMoved: true }, { isStopped: true }])(
    'the audit finds nothing after spins on a build without a fault (%o)',
    async (going) => {
      const report = await auditAfterSpins(ROOT, going);
      expect(report.checks.flatMap(({ listed }) => listed)).toEqual([]);
      expect(report.interrupted).toBeUndefined();
    },
  );
});

describe.each([...DEALING_MUTATIONS, ...RELEASE_MUTATIONS, ...MOVE_MUTATIONS, ...COMMUNAL_MUTATIONS])(
  'audit of stores after spins on a build with the fault: $name',
  ({ faults, found, ...going }) => {
    beforeAll(open);
    afterAll(close);

    test('the audit finds the fault of this build', async () => {
      const broken = await brokenBuild(faults);
      try {
        const report = await auditAfterSpins(broken.root, going);
        expect(guilty(report)).toEqual(expect.arrayContaining([...found]));
      } finally {
        await broken.remove();
      }
    });
  },
);

describe('the reference model on builds with a fault', () => {
  beforeEach(open);
  afterEach(close);

  test.each(FOUND_BY_THE_MODEL)('the reference model finds the fault that $name', async ({ fault }) => {
    const broken = await brokenBuild([fault]);
    const service = await spawnService(environment(stores), [], broken.root);
    try {
      const found = runModel({
        bases: [service.client.base],
        operatorKey: OPERATOR_KEY,
        databaseUrl: stores.databaseUrl,
        redisUrl: stores.redisUrl,
        runs: 40,
        seed: 1,
        shrinkMs: 0,
      });
      await expect(found).rejects.toThrow(ModelFailure);
    } finally {
      await service.end('SIGKILL');
      await broken.remove();
    }
  });
});
