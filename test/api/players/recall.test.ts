/**
 * Tests the game recall: it must show the last games of a player, of every kind, exactly as the player saw
 * them.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
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
