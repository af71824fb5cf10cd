/**
 * Makes copies of the build with one deliberate fault each in the blackjack rounds. The audit or a check of
 * the responses must find every fault.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit } from '../../src/books/audit/audit.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Sql } from '../../src/postgres/connection.js';
import { freshStores } from '../setup/freshStores.js';
import { type OpenNodes, openNodes } from '../support/redis.js';
import { ROOT } from '../support/root.js';
import { act, deal, newTable, type RoundAnswer } from '../support/rounds.js';
import { environment, spawnService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';
import { brokenBuild } from './mutant.js';
import { ROUND_MUTATIONS } from './roundMutations.js';

const PLAYERS = 16;
const ROUNDS = 80;

let stores: TestStores;
let redis: OpenNodes;
let sql: Sql;

async function open(): Promise<void> {
  stores = await freshStores();
  redis = await openNodes(stores.redisUrl);
  sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
}

async function close(): Promise<void> {
  redis.close();
  await sql.end();
  await stores.drop();
}

/** Plays rounds on a build and returns the names of the checks that report a problem. */
async function foundAfterRounds(root: string): Promise<string[]> {
  const service = await spawnService(environment(stores), [], root);
  try {
    const { client } = service;
    const { key, partnerId } = await client.newPartner();
    const gameId = await newTable(client, partnerId);
    let shown = 0;
    const look = (round: RoundAnswer): void => {
      if (round.status === 'OPEN' && round.dealer.cards.length > 1) shown++;
    };
    const play = async (player: number): Promise<void> => {
      for (let n = 0; n < ROUNDS; n++) {
        let { status, body: round } = await deal(client, key, gameId, `p${player}`);
        while (status < 300 && round.status === 'OPEN') {
          look(round);
          const legal = round.legalActions.map(({ action }) => action);
          const wanted = n % 3 === 0 ? ['split', 'hit', 'noInsurance'] : ['split', 'stand', 'noInsurance'];
          const action = wanted.find((each) => legal.includes(each))!;
          ({ status, body: round } = await act(client, key, round.roundId, action, round.lastActionSeq + 1));
        }
        // The responses are ignored, because the audit must find the fault in the stores.
        if (status >= 300) return;
      }
    };
    await Promise.all(Array.from({ length: PLAYERS }, (_, player) => play(player)));
    for (let n = 0; n < 5; n++) {
      const { body } = await deal(client, key, gameId, `late-${n}`);
      const path = `/rounds/${body.roundId}/close`;
      await Promise.all([1, 2, 3, 4].map(() => client.operator('POST', path)));
    }
    const isQuiet = async (): Promise<boolean> => {
      const [row] = await sql<{ n: bigint }[]>`SELECT count(*) AS n FROM cells WHERE halted IS NOT NULL`;
      const waiting = await Promise.all([0, 1, 2, 3].map((cell) => redis.nodes.cell(cell).outbox(1)));
      return row!.n > 0n || waiting.every(({ length }) => length === 0);
    };
    await until(isQuiet, 'all that will be booked is booked');
    const { checks } = await audit(sql, redis.nodes, { limit: 1, onProgress: () => {} });
    const guilty = checks.filter(({ violations }) => violations > 0).map(({ name }): string => name);
    return shown > 0 ? [...guilty, 'hole card'] : guilty;
  } finally {
    await service.end('SIGKILL');
  }
}

describe('the checks of blackjack rounds on a build without a fault', () => {
  beforeAll(open);
  afterAll(close);

  test('the checks of blackjack rounds find nothing on a build without a fault', async () => {
    expect(await foundAfterRounds(ROOT)).toEqual([]);
  });
});

describe.each(ROUND_MUTATIONS)(
  'checks of blackjack rounds on a build with the fault: $name',
  ({ faults, found }) => {
    beforeAll(open);
    afterAll(close);

    test('the checks of blackjack rounds find the fault of this build', async () => {
      const broken = await brokenBuild(faults);
      try {
        expect(await foundAfterRounds(broken.root)).toContain(found);
      } finally {
        await broken.remove();
      }
    });
  },
);
