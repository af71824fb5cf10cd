/** Faults put into the rounds of copies of the build, one at a time: the audit, or whoever reads an answer, must find each. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit } from '../../src/audit/audit.js';
import { connectPostgres, type Sql } from '../../src/postgres/client.js';
import { freshStores } from '../setup/freshStores.js';
import { type OpenNodes, openNodes } from '../support/redis.js';
import { ROOT } from '../support/root.js';
import { act, deal, newTable, type RoundAnswer } from '../support/rounds.js';
import { environment, spawnService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';
import { brokenBuild, type Fault } from './mutant.js';

const PLAYERS = 16;
const ROUNDS = 80;

const built = (file: string, find: string, replace: string): Fault => ({
  file: `dist/src/domain/games/${file}.js`,
  find,
  replace,
});
const lua = (find: string, replace: string): Fault => ({ file: 'lua/roundAct.lua', find, replace });

const MUTATIONS: readonly { name: string; faults: readonly Fault[]; found: string }[] = [
  {
    name: 'a card is dealt twice',
    faults: [built('blackjack', 'this.drawn++;', 'if (this.drawn !== 5) this.drawn++;')],
    found: 'rounds',
  },
  {
    name: 'a push is paid',
    faults: [
      built('blackjack', 'return ours === theirs ? stake : 0;', 'return ours === theirs ? 2 * stake : 0;'),
    ],
    found: 'rounds',
  },
  {
    name: 'a split ace is hit',
    faults: [
      built(
        'blackjack',
        'const isLocked = isFromSplit && isAce(cards[0]) && !rules.hitSplitAces;',
        'const isLocked = false;',
      ),
      built('blackjack', 'return !isFromSplit || ', 'return true || '),
    ],
    found: 'rounds',
  },
  {
    name: 'a timeout runs twice',
    faults: [
      lua(
        'if not before or index ~= tonumber(ARGV[11]) or steps ~= tonumber(ARGV[12]) then',
        'if not before then',
      ),
      lua("call('HDEL', roundsKey, roundField)", "call('HSET', roundsKey, roundField, openRound)"),
    ],
    // The ledger refuses the second one, and halts the cell.
    found: 'cursors',
  },
  {
    name: 'the hole card is shown',
    faults: [built('round', "phase === 'SETTLED' ? dealer : dealer.slice(0, 1)", 'dealer')],
    found: 'hole card',
  },
];

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

/** Plays on a build, and gives the names of the checks that find something. */
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
        // What is answered does not matter here: the audit must find it in the stores.
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
    const { checks } = await audit(sql, redis.nodes, { limit: 1, redraw: undefined, onProgress: () => {} });
    const guilty = checks.filter(({ violations }) => violations > 0).map(({ name }): string => name);
    return shown > 0 ? [...guilty, 'hole card'] : guilty;
  } finally {
    await service.end('SIGKILL');
  }
}

describe('in rounds', () => {
  beforeAll(open);
  afterAll(close);

  test('nothing is found where nothing is wrong', async () => {
    expect(await foundAfterRounds(ROOT)).toEqual([]);
  });
});

describe.each(MUTATIONS)('$name', ({ faults, found }) => {
  beforeAll(open);
  afterAll(close);

  test('is found', async () => {
    const broken = await brokenBuild(faults);
    try {
      expect(await foundAfterRounds(broken.root)).toContain(found);
    } finally {
      await broken.remove();
    }
  });
});
