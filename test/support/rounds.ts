/** Blackjack over HTTP for tests: tables, deals and actions. */
import assert from 'node:assert/strict';
import type postgres from 'postgres';
import { bodyOf } from '../../src/api/client/apiClients.js';
import { audit } from '../../src/books/audit/audit.js';
import { DEFAULT_RULES } from '../../src/domain/games/blackjackRules.js';
import { cardText } from '../../src/domain/games/cards.js';
import { shuffleShoe } from '../../src/domain/games/shoe.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import { booksHold } from './books.js';
import type { Answer, Client } from './client.js';
import { openNodes } from './redis.js';
import type { StoreUrls } from './stores.js';
import { until } from './wait.js';

export interface RoundAnswer {
  roundId: string;
  gameId: number;
  playerId: string;
  status: string;
  phase: string;
  lastActionSeq: number;
  wageredUsd: number;
  payoutUsd: number | null;
  dealer: { cards: string[]; total: number };
  activeHand: number | null;
  hands: {
    cards: string[];
    total: number;
    isSoft: boolean;
    wagerUsd: number;
    status: string;
    payoutUsd?: number;
  }[];
  legalActions: { action: string; costUsd?: number }[];
  insurance: { wagerUsd: number; payoutUsd?: number } | null;
  autoCompleted?: boolean;
  rulesHash: string;
  shoe: { index: number; commitment: string; seed?: string };
  expiresAt: string;
  balance: { balanceUsd: number };
  requestId?: string;
  errorCode?: string;
  actions?: string[];
}

export const WAGER_USD = 0.25;
const PLAY = '/api/play/blackjack';
let tables = 0;

/**
 * Creates a blackjack table without waiting for its shoes.
 * @returns the id of the table
 */
export async function registerTable(
  client: Client,
  partnerId: number,
  rules: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
): Promise<number> {
  const name = `TABLE_${process.pid}_${++tables}`;
  const body = { displayName: name, configName: name, wagerUsd: WAGER_USD, rules, ...more };
  const made = await client.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partnerId}/blackjack-games`,
    body,
  );
  if (made.status !== 201) throw new Error(`no table: ${made.text}`);
  return made.body.gameConfigId;
}

/**
 * Creates a blackjack table and waits until it can be dealt from.
 * @returns the id of the table
 */
export async function newTable(...table: Parameters<typeof registerTable>): Promise<number> {
  const [client] = table;
  const id = await registerTable(...table);
  await until(
    async () => {
      const { queue } = await bodyOf(client.api.operator.GET('/games/{id}', { params: { path: { id } } }));
      return queue.outcomesReady > 0;
    },
    'the table has shoes',
    30_000,
  );
  return id;
}

export const play = <T = RoundAnswer>(
  client: Client,
  key: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<T>> => client.request<T>(method, PLAY + path, { key, body });

export const deal = (
  client: Client,
  key: string,
  gameId: number,
  playerId: string,
  requestId?: string,
): Promise<Answer<RoundAnswer>> =>
  play(client, key, 'POST', '/deal', {
    gameId,
    playerId,
    wagerUsd: WAGER_USD,
    ...(requestId === undefined ? {} : { requestId }),
  });

/** Whether the player can act on a hand. An open round first offers insurance if the dealer shows an ace. */
export const isPlaying = ({ phase }: RoundAnswer): boolean => phase === 'PLAYER';

export const act = (
  client: Client,
  key: string,
  roundId: string,
  action: string,
  seq: number,
): Promise<Answer<RoundAnswer>> => play(client, key, 'POST', '/action', { roundId, action, seq });

/**
 * Deals rounds to new players until a round matches a condition.
 * @returns this round
 */
export async function dealUntil(
  client: Client,
  key: string,
  gameId: number,
  name: string,
  fits: (round: RoundAnswer) => boolean,
): Promise<RoundAnswer> {
  for (let i = 0; i < 2000; i++) {
    const dealt = await deal(client, key, gameId, `${name}-${i}`);
    if (dealt.status !== 201) throw new Error(`not dealt: ${dealt.text}`);
    if (fits(dealt.body)) return dealt.body;
  }
  throw new Error('no round fits');
}

/** Completes a round with a losing strategy that uses every action. */
export async function playOut(client: Client, key: string, start: RoundAnswer): Promise<RoundAnswer> {
  const wanted = ['split', 'insurance', 'double', 'hit', 'stand', 'noInsurance'];
  let round = start;
  while (round.status === 'OPEN') {
    const legal = round.legalActions.map(({ action }) => action);
    const action = wanted.find((each) => legal.includes(each))!;
    const answer = await act(client, key, round.roundId, action, round.lastActionSeq + 1);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.body.lastActionSeq, round.lastActionSeq + 1);
    round = answer.body;
  }
  return round;
}

/** Returns the dealer's hole card at a table with the default number of decks, and the seed of the shoe. */
export async function holeCard(
  sql: postgres.Sql<{ bigint: bigint }>,
  { gameId, shoe }: RoundAnswer,
): Promise<{ card: string; seed: string }> {
  const [row] = await sql<{ seed: Buffer }[]>`
    SELECT substring(seed FROM (${shoe.index} - from_index)::int * 32 + 1 FOR 32) AS seed FROM blocks
    WHERE game_id = ${gameId} AND from_index <= ${shoe.index} AND to_index > ${shoe.index}`;
  const { seed } = row!;
  return { card: cardText(shuffleShoe(DEFAULT_RULES.decks, seed)[3]!), seed: seed.toString('hex') };
}

/**
 * Checks that the books are consistent and that an audit which replays the rounds finds no violation.
 * @throws AssertionError
 */
export async function expectClean(
  { redisUrl, databaseUrl }: StoreUrls,
  sql: postgres.Sql<{ bigint: bigint }>,
): Promise<void> {
  await booksHold(sql);
  const { nodes, close } = await openNodes(redisUrl);
  const connection = connectPostgres(databaseUrl, { max: 2, name: 'test', onError: () => {} });
  try {
    const report = await audit(connection, nodes, { limit: 5, onProgress: () => {} });
    assert.deepEqual(
      report.checks.flatMap(({ name, listed }) => listed.map((each) => ({ name, ...each }))),
      [],
    );
    assert.equal(report.interrupted, undefined);
    const { looked } = report.checks.find(({ name }) => name === 'rounds')!;
    assert.ok(looked['rounds replayed']! > 0);
  } finally {
    close();
    await connection.end();
  }
}
