/** Creates the partner, the games and the reference state of a sequence. */
import fc from 'fast-check';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';
import { amount, at, decimal, type Json, micros, product } from '../decimal.js';
import { type Reply, type Session, same } from './session.js';
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
  readonly pageSize: number;
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
  pageSize: fc.constantFrom(100, 100, 100, 3),
});

/** The simplest partner and games, with which a failure is easiest to understand. */
export const SIMPLEST: Setting = {
  partner: {
    openingBalanceUsd: 100.000001,
    balanceMode: 'track',
    largeWinThresholdUsd: 100,
    minReadyBlocks: 1,
  },
  sheet: 'classic-3-reel',
  poolSize: 50,
  pageSize: 100,
};

const PRIZE = { prizeName: 'Mug', prizeTier: 1, valueUsd: 1.5, count: 1 };
const WAGER_USD = 0.25;

interface Combination {
  readonly tierId: number;
  readonly payMultiplier: number;
  readonly comboString: string;
}

export async function newState(
  session: Session,
  setting: Setting,
  { hasRaffle, hasTable }: { readonly hasRaffle: boolean; readonly hasTable: boolean },
): Promise<State> {
  const day = new Date().toISOString().slice(0, 10);
  const { openingBalanceUsd, balanceMode, largeWinThresholdUsd } = setting.partner;
  // Games that take long to become ready are created first.
  const games = [
    ...(hasTable ? [await newTable(session)] : []),
    ...(hasRaffle ? [await newRaffle(session, setting.poolSize)] : []),
    await newSlot(session, setting.sheet),
  ];
  for (const { gameId } of games) await isPlayable(session, gameId);
  return {
    opening: amount(String(openingBalanceUsd))!,
    isEnforced: balanceMode === 'enforce',
    threshold: amount(String(largeWinThresholdUsd))!,
    pageSize: setting.pageSize,
    games: games.sort((a, b) => a.gameId - b.gameId),
    players: new Map(),
    spins: [],
    bound: new Map(),
    adjusted: new Map(),
    largeWins: [],
    revoked: [],
    forced: new Map(),
    adjustments: 0n,
    report: undefined,
    day,
  };
}

const newGame = (gameId: number, kind: Game['kind'], wager: bigint, outcomes: readonly string[]): Game => ({
  gameId,
  kind,
  wager,
  isSuspended: false,
  isVoided: false,
  pot: undefined,
  outcomes: new Set(outcomes),
  left: new Map(),
  ticketsLeft: 0,
  totals: { spins: 0, wagered: 0n, paid: 0n },
});

/**
 * @throws Difference unless the response is 201.
 * @returns the id of the created object
 */
async function made(what: string, name: string, asked: Promise<Reply>): Promise<number> {
  const reply = await asked;
  same(`${what} is made`, reply.status, 201, reply.text);
  return Number(at(reply.json, name));
}

/** Poll interval in ms for a game that is not playable yet. */
const LOOK_EVERY_MS = 30;

async function isPlayable(session: Session, gameId: number): Promise<void> {
  const hasOutcomes = async (): Promise<boolean> => {
    const { json } = await session.operator('GET', `/games/${gameId}`);
    return Number(at(json, 'queue', 'outcomesReady')) > 0;
  };
  await until(hasOutcomes, 'the game has outcomes', session.world.patienceMs, LOOK_EVERY_MS);
}

async function newSlot(session: Session, name: string): Promise<Game> {
  const { partnerId } = session.partner;
  const sheet = parSheet(name);
  const parSheetId = await made('a sheet', 'parSheetId', session.partnerApi('POST', '/par-sheets', sheet));
  const body = { parSheetId, displayName: name, configName: `SLOT_${partnerId}` };
  const gameId = await made('a game', 'gameConfigId', registered(session, body));
  const wager = decimal(String(sheet.denominationUsd));
  const outcomes = (sheet.combinations as readonly Combination[]).map(
    ({ tierId, payMultiplier, comboString }) =>
      `${tierId} ${micros(product(wager, decimal(String(payMultiplier))))} ${comboString}`,
  );
  return newGame(gameId, 'slot', micros(wager)!, outcomes);
}

/**
 * A failed registration may have created the game (docs/errors.md, KS-5005). The list of games contains it in
 * that case; otherwise the registration is retried.
 */
async function registered(session: Session, body: { readonly configName: string }): Promise<Reply> {
  let reply = await session.partnerApi('POST', '/games', body);
  const isDone = async (): Promise<boolean> => {
    if (reply.status !== 500 || at(reply.json, 'errorCode') !== 'KS-5005') return true;
    session.saw('a registration that failed');
    const { json } = await session.partnerApi('GET', '/games');
    const games = (at(json, 'games') ?? []) as readonly Json[];
    const game = games.find((each) => at(each, 'configName') === body.configName);
    reply =
      game === undefined
        ? await session.partnerApi('POST', '/games', body)
        : { ...reply, status: 201, json: game };
    return false;
  };
  await until(isDone, 'a game is registered', session.world.patienceMs, LOOK_EVERY_MS);
  return reply;
}

async function newRaffle(session: Session, poolSize: number): Promise<Game> {
  const { partnerId } = session.partner;
  const terms = { ticketPriceUsd: WAGER_USD, poolSize, prizes: [PRIZE] };
  const body = { displayName: 'Raffle', configName: `RAFFLE_${partnerId}`, ...terms };
  const path = `/partners/${partnerId}/raffles`;
  const gameId = await made('a raffle', 'gameConfigId', session.operator('POST', path, body));
  const won = `${PRIZE.prizeTier} ${amount(String(PRIZE.valueUsd))} ${PRIZE.prizeName}`;
  const lost = '0 0 No Win';
  const game = newGame(gameId, 'raffle', amount(String(WAGER_USD))!, [won, lost]);
  const left = new Map([
    [won, PRIZE.count],
    [lost, poolSize - PRIZE.count],
  ]);
  return Object.assign(game, { left, ticketsLeft: poolSize });
}

async function newTable(session: Session): Promise<Game> {
  const { partnerId } = session.partner;
  const body = { displayName: 'Table', configName: `TABLE_${partnerId}`, wagerUsd: WAGER_USD, rules: {} };
  const path = `/partners/${partnerId}/blackjack-games`;
  const gameId = await made('a table', 'gameConfigId', session.operator('POST', path, body));
  return newGame(gameId, 'blackjack', amount(String(WAGER_USD))!, []);
}
