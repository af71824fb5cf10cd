/** What a sequence begins with: a partner, its games, and a reference that knows them. */
import fc from 'fast-check';
import type { Client, TestPartner } from '../../support/client.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';
import { amount, decimal, micros, product } from '../decimal.js';
import type { Game, State } from './state.js';

export interface Setting {
  readonly partner: {
    readonly openingBalanceUsd: number;
    readonly balanceMode: 'track' | 'enforce';
    readonly largeWinThresholdUsd: number;
    readonly minReadyBlocks: number;
  };
  readonly sheet: string;
  readonly poolSize: number;
}

export const settings: fc.Arbitrary<Setting> = fc.record({
  partner: fc.record({
    openingBalanceUsd: fc.constantFrom(0, 1, 100.000001),
    balanceMode: fc.constantFrom('track', 'track', 'enforce'),
    largeWinThresholdUsd: fc.constantFrom(0, 0.3, 100),
    minReadyBlocks: fc.constant(1),
  }),
  sheet: fc.constantFrom('classic-3-reel', 'penny-sub-cent'),
  poolSize: fc.constantFrom(2, 4, 50),
});

const PRIZE = { prizeName: 'Mug', prizeTier: 1, valueUsd: 1.5, count: 1 };
const WAGER_USD = 0.25;

interface Combination {
  readonly tierId: number;
  readonly payMultiplier: number;
  readonly comboString: string;
}

/** Makes the games of a sequence, and waits until they can be played. */
export async function newState(
  client: Client,
  { partnerId, key }: TestPartner,
  setting: Setting,
  { hasRaffle, hasTable }: { readonly hasRaffle: boolean; readonly hasTable: boolean },
): Promise<State> {
  const day = new Date().toISOString().slice(0, 10);
  const { openingBalanceUsd, balanceMode, largeWinThresholdUsd } = setting.partner;
  const games = await Promise.all([
    newSlot(client, key, setting.sheet),
    ...(hasRaffle ? [newRaffle(client, partnerId, setting.poolSize)] : []),
    ...(hasTable ? [newTable(client, partnerId)] : []),
  ]);
  return {
    opening: amount(String(openingBalanceUsd))!,
    isEnforced: balanceMode === 'enforce',
    threshold: amount(String(largeWinThresholdUsd))!,
    games: games.sort((a, b) => a.gameId - b.gameId),
    ...{ players: new Map(), spins: [], bound: new Map(), adjusted: new Map(), largeWins: [], revoked: [] },
    ...{ forced: new Map(), adjustments: 0n, report: undefined, day },
  };
}

const newGame = (gameId: number, kind: Game['kind'], wager: bigint, outcomes: readonly string[]): Game => ({
  ...{ gameId, kind, wager, isSuspended: false, pot: undefined, outcomes: new Set(outcomes) },
  ...{ left: new Map(), ticketsLeft: 0, totals: { spins: 0, wagered: 0n, paid: 0n } },
});

async function newSlot(client: Client, key: string, name: string): Promise<Game> {
  const sheet = parSheet(name);
  const gameId = await client.newGame(key, sheet);
  const wager = decimal(String(sheet.denominationUsd));
  const outcomes = (sheet.combinations as readonly Combination[]).map(
    ({ tierId, payMultiplier, comboString }) =>
      `${tierId} ${micros(product(wager, decimal(String(payMultiplier))))} ${comboString}`,
  );
  return newGame(gameId, 'slot', micros(wager)!, outcomes);
}

async function newRaffle(client: Client, partnerId: number, poolSize: number): Promise<Game> {
  const terms = { ticketPriceUsd: WAGER_USD, poolSize, prizes: [PRIZE] };
  const gameId = await client.api.newRaffle(partnerId, `raffle-${partnerId}`, terms);
  const won = `${PRIZE.prizeTier} ${amount(String(PRIZE.valueUsd))} ${PRIZE.prizeName}`;
  const lost = '0 0 No Win';
  const game = newGame(gameId, 'raffle', amount(String(WAGER_USD))!, [won, lost]);
  const left = new Map([
    [won, PRIZE.count],
    [lost, poolSize - PRIZE.count],
  ]);
  return Object.assign(game, { left, ticketsLeft: poolSize });
}

async function newTable(client: Client, partnerId: number): Promise<Game> {
  const name = `TABLE_${partnerId}`;
  const body = { displayName: name, configName: name, wagerUsd: WAGER_USD, rules: {} };
  const path = `/partners/${partnerId}/blackjack-games`;
  const made = await client.operator<{ gameConfigId: number }>('POST', path, body);
  if (made.status !== 201) throw new Error(`No table: ${made.text}`);
  const gameId = made.body.gameConfigId;
  const hasShoes = async (): Promise<boolean> => {
    const { body: game } = await client.operator<{ queue: { outcomesReady: number } }>(
      'GET',
      `/games/${gameId}`,
    );
    return game.queue.outcomesReady > 0;
  };
  await until(hasShoes, 'the table has shoes');
  return newGame(gameId, 'blackjack', amount(String(WAGER_USD))!, []);
}
