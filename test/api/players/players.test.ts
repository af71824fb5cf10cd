/**
 * Tests what players and operators read of a player: the game recall, which must show the last games of every
 * kind exactly as the player saw them, the statement, and all of this for players with unusual names.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { Spindle } from '../../../clients/typescript/src/index.js';
import { namedPlayer } from '../../../clients/typescript/src/playerNames.js';
import { operatorClient } from '../../../src/api/client/apiClients.js';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { RULES, setUp } from '../../support/communal.js';
import { act, deal, newTable, play, type RoundAnswer } from '../../support/rounds.js';
import { microsOf } from '../../support/settlement.js';
import { parSheet } from '../../support/sheets.js';

type Json = Record<string, unknown>;
interface Answered extends Json {
  spinId: string;
  outcome: { payoutUsd: number };
  balance: { balanceUsd: number };
  communityBonus: { isTriggerPlayer: boolean; yourShareUsd: string } | null;
}
interface Recalled extends Json {
  kind: string;
  presentation: Json;
  outcomeIndex?: number;
}

const WAGER = 0.25;
/** Every tenth spin fires the bonus. The player who fired it gets 40 %, and the other players share 60 %. */
const BONUS = {
  ...RULES,
  tiers: [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '5.00' }],
};

const { service, partner } = world({}, { partner: { openingBalanceUsd: 1000 } });
let slot: number;
let communal: number;
let raffle: number;
let table: number;

beforeAll(async () => {
  slot = await service.newGame(partner.key, parSheet('classic-3-reel'));
  communal = await service.newGame(partner.key, parSheet('classic-3-reel'));
  await setUp(service, communal, BONUS);
  table = await newTable(service, partner.partnerId);
  raffle = await service.api.newRaffle(partner.partnerId, 'recalled', {
    ticketPriceUsd: 1,
    poolSize: 100,
    prizes: [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 5, count: 20 }],
  });
});

const spin = async (gameId: number, playerId: string, wagerUsd = WAGER): Promise<Answered> => {
  const answer = await service.spin<Answered>(partner.key, { gameId, playerId, wagerUsd });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const dealt = async (playerId: string): Promise<RoundAnswer> => {
  const answer = await deal(service, partner.key, table, playerId);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
};
/** Ends a round by standing, and by declining insurance if it is offered. */
async function stood(round: RoundAnswer): Promise<RoundAnswer> {
  let now = round;
  while (now.status === 'OPEN') {
    const legal = now.legalActions.map(({ action }) => action);
    const action = legal.includes('stand') ? 'stand' : 'noInsurance';
    now = (await act(service, partner.key, now.roundId, action, now.lastActionSeq + 1)).body;
  }
  return now;
}
const recall = async (playerId: string, query = ''): Promise<Recalled[]> => {
  const answer = await service.partner<{ games: Recalled[] }>(
    'GET',
    `/players/${playerId}/recall${query}`,
    partner.key,
  );
  expect(answer.status, answer.text).toBe(200);
  return answer.body.games;
};

/** Returns what the game recall must contain for a spin or ticket that got this response. */
const ofSpin = (kind: string, gameId: number, wagerUsd: number, { outcome, ...answer }: Answered) => ({
  ...answer,
  kind,
  gameId,
  outcome,
  wagerUsd,
  payoutUsd: outcome.payoutUsd,
  balanceAfterUsd: answer.balance.balanceUsd,
});
/** Returns what the game recall must contain for this round. */
const ofRound = (round: RoundAnswer) => ({
  kind: 'round',
  roundId: round.roundId,
  gameId: round.gameId,
  wagerUsd: round.wageredUsd,
  payoutUsd: round.payoutUsd,
  balanceAfterUsd: round.balance.balanceUsd,
  outcomeIndex: round.shoe.index,
});

describe("the recall of a player's last games", () => {
  test('the game recall shows ten mixed games as the player saw them, each starting with the balance after the previous game', async () => {
    const playerId = 'mixed';
    const shown: Json[] = [];
    for (let i = 0; i < 2; i++) {
      shown.push(ofSpin('spin', slot, WAGER, await spin(slot, playerId)));
      shown.push(ofSpin('ticket', raffle, 1, await spin(raffle, playerId, 1)));
      const round = await stood(await dealt(playerId));
      const { hands, dealer, insurance, status, phase } = round;
      shown.push({
        ...ofRound(round),
        presentation: expect.objectContaining({ hands, dealer, insurance, status, phase }),
      });
      shown.push(ofSpin('spin', communal, WAGER, await spin(communal, playerId)));
      shown.push(ofSpin('spin', slot, WAGER, await spin(slot, playerId)));
    }
    const games = await recall(playerId);
    expect(games).toMatchObject(shown.toReversed());
    let before = microsOf(1000);
    for (const game of games.toReversed()) {
      expect(microsOf(game.balanceBeforeUsd)).toBe(before);
      const bonus = game.communityBonus as Answered['communityBonus'] | undefined;
      const share = bonus?.isTriggerPlayer === true ? microsOf(bonus.yourShareUsd) : 0n;
      before += microsOf(game.payoutUsd) - microsOf(game.wagerUsd) + share;
      expect(microsOf(game.balanceAfterUsd)).toBe(before);
    }
    expect(games.every(({ displayName }) => typeof displayName === 'string')).toBe(true);

    const asOperator = await service.operator<{ games: Recalled[] }>(
      'GET',
      `/partners/${partner.partnerId}/players/${playerId}/recall`,
    );
    expect(asOperator.body.games).toEqual(games);
    expect(await recall(playerId, '?limit=3')).toEqual(games.slice(0, 3));

    const spins = games.filter(({ kind }) => kind === 'spin' || kind === 'ticket');
    const history = await service.partner<{ spins: Json[] }>(
      'GET',
      `/players/${playerId}/spins`,
      partner.key,
    );
    expect(spins).toMatchObject(history.body.spins);
  });

  test('the game recall shows a bonus share inside the spin that fired the bonus, and as a game of its own for other players', async () => {
    const fired: string[] = [];
    for (let i = 0; i < 30; i++) {
      const playerId = `sharer-${i % 3}`;
      if ((await spin(communal, playerId)).communityBonus?.isTriggerPlayer === true) fired.push(playerId);
    }
    expect(fired.length).toBeGreaterThan(0);
    let shares = 0;
    for (let i = 0; i < 3; i++) {
      const games = await recall(`sharer-${i}`, '?limit=50');
      for (const game of games.filter(({ kind }) => kind === 'share')) {
        shares++;
        expect(game).toMatchObject({ wagerUsd: 0, gameId: communal, presentation: { tierName: 'Mini' } });
        expect(microsOf(game.balanceAfterUsd)).toBe(
          microsOf(game.balanceBeforeUsd) + microsOf(game.payoutUsd),
        );
      }
      const told = games.filter(({ communityBonus }) => (communityBonus as Json | null)?.isTriggerPlayer);
      expect(told).toHaveLength(fired.filter((each) => each === `sharer-${i}`).length);
    }
    expect(shares).toBeGreaterThan(0);
  });

  test('the game recall shows an open blackjack round without its hole card and without a payout', async () => {
    let i = 0;
    let round = await dealt('open-0');
    while (round.status !== 'OPEN') round = await dealt(`open-${++i}`);
    const [game] = await recall(`open-${i}`);
    expect(game).toMatchObject({ ...ofRound(round), payoutUsd: null, endedAt: null });
    expect((game!.presentation.dealer as { cards: string[] }).cards).toEqual(round.dealer.cards);
    expect(round.dealer.cards).toHaveLength(1);
    expect(JSON.stringify(game)).not.toContain('seed');
    await play(service, partner.key, 'GET', `/rounds/${round.roundId}`);
  });
});

describe('the statement of a player', () => {
  interface Entry {
    readonly entryId: string;
    readonly kind: string;
    readonly createdAt: string;
    readonly requestId: string | null;
    readonly spinId: string | null;
    readonly balanceUsd: number;
  }
  interface Statement {
    readonly entries: readonly Entry[];
    readonly nextCursor: string | null;
  }

  /** More than two of every 64 entries, which the index of players has. */
  const SPINS = 150;

  let path: string;
  /** All entries of the player, newest first. */
  let all: readonly Entry[];

  beforeAll(async () => {
    for (let i = 0; i < SPINS; i++) {
      const requestId = i === 0 ? '=1+1' : `spin-${i}`;
      const { status } = await service.spin(partner.key, {
        gameId: slot,
        playerId: 'stated',
        wagerUsd: 0.25,
        requestId,
      });
      expect(status).toBe(200);
    }
    path = `/partners/${partner.partnerId}/players/stated/statement`;
    all = await read('');
    // The first entry is the opening.
    expect(all).toHaveLength(SPINS + 1);
  });

  /** Reads all pages of a statement. */
  async function read(query: string, limit = 100): Promise<Entry[]> {
    const entries: Entry[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { status, body }: { status: number; body: Statement } = await service.operator(
        'GET',
        `${path}?limit=${limit}${query}${cursor && `&cursor=${cursor}`}`,
      );
      expect(status).toBe(200);
      expect(body.entries.length).toBeLessThanOrEqual(limit);
      entries.push(...body.entries);
      cursor = body.nextCursor;
    }
    return entries;
  }

  test.each([
    [0, 20],
    [20, 90],
    [70, 149],
    [149, 150],
  ])(
    'the statement of a range of time has exactly the entries of that time, from entry %i to %i',
    async (newest, oldest) => {
      const [from, to] = [all[oldest]!.createdAt, all[newest]!.createdAt];
      const expected = all.filter(({ createdAt }) => createdAt >= from && createdAt < to);
      for (const limit of [7, 100]) expect(await read(`&from=${from}&to=${to}`, limit)).toEqual(expected);
      expect(await read(`&from=${from}`)).toEqual(all.filter(({ createdAt }) => createdAt >= from));
      expect(await read(`&to=${to}`, 33)).toEqual(all.filter(({ createdAt }) => createdAt < to));
    },
  );

  test('the statement of a time without entries is empty, and a wrong time is refused', async () => {
    expect(await read('&to=2020-01-01T00:00:00Z')).toEqual([]);
    expect(await read('&from=2099-01-01T00:00:00Z')).toEqual([]);
    for (const [query, fault] of [['from=2026-02-02T00:00:00Z&to=2026-02-01T00:00:00Z', '/to']])
      expect(await service.operator('GET', `${path}?${query}`)).toMatchObject({
        status: 400,
        body: { errorCode: 'KS-4101', details: [{ path: fault }] },
      });
  });

  test('the statement as CSV has all entries of the range, and neutralizes formulas if asked', async () => {
    const csv = async (query: string): Promise<string[]> => {
      const answer = await service.request('GET', `/api/operator/v1${path}?${query}`, {
        key: OPERATOR_KEY,
        headers: { Accept: 'text/csv' },
      });
      expect(answer.headers.get('content-type')).toMatch(/^text\/csv/);
      return answer.text.split('\r\n').slice(0, -1);
    };
    const [head, ...rows] = await csv('limit=1');
    expect(head).toBe('entryId,kind,createdAt,gameId,wagerUsd,creditUsd,balanceUsd,requestId,spinId');
    expect(rows.map((row) => row.split(',')[0])).toEqual(all.map(({ entryId }) => `"${entryId}"`));
    const first = all.at(-2)!;
    expect(rows.at(-2)).toMatch(
      new RegExp(
        `^"${first.entryId}","spin","${first.createdAt}",\\d+,0\\.25,.*,"=1\\+1","${first.spinId}"$`,
      ),
    );
    expect((await csv('escapeFormulas=true')).at(-2)).toContain(`,"'=1+1",`);
    expect(await csv(`from=${all[10]!.createdAt}&to=${all[0]!.createdAt}`)).toEqual([
      head,
      ...rows.filter(
        (_, i) => all[i]!.createdAt >= all[10]!.createdAt && all[i]!.createdAt < all[0]!.createdAt,
      ),
    ]);
  });
});

/** Names that can't appear in a URL path, or only percent-encoded. */
const NAMES = [
  ...[
    '.',
    '..',
    '...',
    '%2e',
    '%2E%2E',
    '%252e',
    '.%2e',
    '../..',
    './',
    '/',
    '//',
    '/../',
    '%2F',
    '_',
    '__',
    '-',
  ],
  ...[' ', '\u00a0', '\u200b', '\u3000', '+', '%', '?', '#', '?playerId=x', ';', ':', '*', '\\', 'null', '0'],
];

describe('players with unusual names', () => {
  let spindle: Spindle;

  beforeAll(async () => {
    spindle = new Spindle({ baseUrl: service.base, apiKey: partner.key });
    for (const playerId of NAMES) await spindle.spin({ gameId: slot, playerId, wagerUsd: 0.25 });
  });

  /** Sends a request with `fetch`, which normalizes paths as browsers do. */
  async function fetched(method: string, path: string, playerId: string, body?: object) {
    const { inPath, inQuery } = namedPlayer(playerId);
    const query = new URLSearchParams(inQuery as Record<string, string>);
    const url = `${service.base}/api/operator/v1/partners/${partner.partnerId}/players/${encodeURIComponent(inPath.playerId)}${path}?${query}`;
    const headers = { 'X-API-Key': OPERATOR_KEY, 'Content-Type': 'application/json' };
    const answer = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }

  describe.each(NAMES.map((name) => [JSON.stringify(name), name]))(
    'a player named %s',
    (_shown, playerId) => {
      test('finds a player with an unusual name by every call of the TypeScript client', async () => {
        expect(await spindle.getPlayer(playerId)).toMatchObject({ playerId, status: 'ACTIVE' });
        const spins = [];
        for await (const spin of spindle.playerSpins(playerId)) spins.push(spin);
        expect(spins).toHaveLength(1);
        expect(await spindle.recall(playerId)).toHaveLength(1);
        for await (const bonus of spindle.communal.bonuses(playerId)) expect.unreachable(bonus.eventId);
      });

      test('lets operators read, block, unblock and pay a player with an unusual name through clients that normalize paths', async () => {
        expect(await fetched('GET', '/statement', playerId)).toMatchObject({
          status: 200,
          body: { playerId },
        });
        expect((await fetched('GET', '/recall', playerId)).body.games).toHaveLength(1);
        for (const status of ['BLOCKED', 'ACTIVE']) {
          const order = { status, reason: 'test' };
          expect(await fetched('PATCH', '', playerId, order)).toMatchObject({
            status: 200,
            body: { playerId, status },
          });
          expect(await spindle.getPlayer(playerId)).toMatchObject({ playerId, status });
        }
        const order = { amountUsd: 1, reason: 'test', requestId: `pay ${playerId}` };
        expect(await fetched('POST', '/adjustments', playerId, order)).toMatchObject({
          status: 200,
          body: { playerId },
        });
      });

      test('finds a player by an encoded name in the path if no client normalizes that path', async () => {
        const path = { id: partner.partnerId, playerId };
        const { data } = await operatorClient(service.base, OPERATOR_KEY).GET(
          '/partners/{id}/players/{playerId}/statement',
          { params: { path } },
        );
        expect(data).toMatchObject({ playerId });
      });
    },
  );

  test('accepts a player name in the query only once, and only if the path has the placeholder `_` for the player', async () => {
    const ask = (path: string) => service.partner('GET', path, partner.key);
    expect(await ask('/players/_?playerId=..')).toMatchObject({ status: 200, body: { playerId: '..' } });
    expect(await ask('/players/_?playerId=_')).toMatchObject({ status: 200, body: { playerId: '_' } });
    expect(await ask('/players/_')).toMatchObject({ status: 200, body: { playerId: '_' } });
    for (const wrong of [
      '/players/alice?playerId=..',
      '/players/_?playerId=a&playerId=b',
      '/players/_?playerId=%00',
    ])
      expect(await ask(wrong)).toMatchObject({
        status: 400,
        body: { errorCode: 'KS-4101', details: [{ path: '/playerId' }] },
      });
  });
});
