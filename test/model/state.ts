/**
 * Possible states of a partner: players, balances and bound request ids. No function changes a state in
 * place.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Changing } from './changing.js';
import { counted, type Player, type Pot, type Share, type SpinName } from './communal.js';
import { amount, at, decimal, isSame, type Json, usd } from './decimal.js';
import {
  type Answer,
  type Answered,
  complain,
  type Exchange,
  fail,
  parsed,
  type SpinRequest,
} from './exchange.js';
import type { Combination, Sheet } from './sheet.js';

export interface Settings {
  readonly isActive: boolean;
  readonly spinRateLimit: number;
  readonly apiRateLimit: number;
  readonly opening: bigint;
  readonly isEnforced: boolean;
  /** Funding. Null means no limit. */
  readonly funding: bigint | null;
}

/**
 * Checks that a response to the operator contains these settings.
 * @throws Violation
 */
export function judgeSettings(answer: Answered, status: number, settings: Settings): void {
  const { json } = answer;
  const isSame =
    answer.status === status &&
    isDeepStrictEqual(
      ['isActive', 'spinRateLimit', 'apiRateLimit', 'balanceMode'].map((name) => at(json, name)),
      [
        settings.isActive,
        String(settings.spinRateLimit),
        String(settings.apiRateLimit),
        settings.isEnforced ? 'enforce' : 'track',
      ],
    ) &&
    amount(at(json, 'openingBalanceUsd')) === settings.opening &&
    (settings.funding === null
      ? at(json, 'fundingUsd') === null
      : amount(at(json, 'fundingUsd')) === settings.funding);
  if (!isSame) complain(answer, `Expected ${status} with other settings`);
}

export interface Game {
  readonly gameId: number;
  readonly sheet: Sheet;
  readonly isSuspended: Changing<boolean>;
  /** Symbols by stop, as far as responses have shown them. */
  readonly strip: Map<string, string>;
}

export interface Lost {
  readonly request: SpinRequest;
  readonly sentAt: number;
}

export interface LostDeal {
  readonly payout: bigint;
  readonly after: bigint;
  /** Id of the spin, once a response has contained it. */
  readonly spinId?: string;
}

export interface Bound {
  readonly spin: SpinName;
  readonly request: SpinRequest;
}

/** A dealt spin, with the values that the responses to its requests contain. */
export interface SpinRecord {
  readonly spinId: string;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  readonly payout: bigint;
  readonly after: bigint;
  readonly json: Json;
  /** Text of the response of POST /spin, once it is known. */
  text?: string;
  createdAt?: string;
  /** Times of the request and its response, if that single request dealt the spin. */
  during?: { readonly sentAt: number; readonly receivedAt: number };
}

export interface ExpectedRow {
  readonly playerId: string;
  readonly gameId: number;
  readonly requestId: string | null;
  readonly kind: 'spin' | 'share' | 'forced';
  readonly wager: bigint;
  readonly credit: bigint;
  readonly balance: bigint;
}

/** A possible state. It is never changed in place. */
export interface State {
  readonly players: ReadonlyMap<string, Player>;
  /** Bound request ids, each with its spin and its request. */
  readonly bound: ReadonlyMap<string, Bound>;
  /** Lost spins that were dealt, by their index in the list of lost spins. */
  readonly lostDeals: ReadonlyMap<number, LostDeal>;
  /** Payouts minus wagers in micro-USD. */
  readonly net: bigint;
  readonly pots: ReadonlyMap<number, Pot>;
  /** Shares of which spins notified their players. Spins without a notice are left out. */
  readonly told: ReadonlyMap<SpinName, Share>;
  /** Ids of events that are known, by the spin that fired the event. */
  readonly eventIds: ReadonlyMap<SpinName, string>;
  /** Outcomes that testers chose for the next spin, by game and player. */
  readonly choices: ReadonlyMap<string, Combination>;
  readonly forced: ReadonlyMap<SpinName, Combination>;
}

export const NO_STATE: State = {
  players: new Map(),
  bound: new Map(),
  lostDeals: new Map(),
  net: 0n,
  pots: new Map(),
  told: new Map(),
  eventIds: new Map(),
  choices: new Map(),
  forced: new Map(),
};

/** Returns the states without duplicates. */
export const union = (states: readonly State[]): State[] =>
  states.length <= 1 ? [...states] : [...new Map(states.map((state) => [keyOf(state), state])).values()];

const keyOf = ({ players, lostDeals, pots, told, eventIds, choices, forced }: State): string =>
  JSON.stringify(
    [
      [...players].map(([id, { opening, balance, entries }]) => [id, opening, balance, entries]).sort(),
      [...lostDeals].map(([place, { payout, after, spinId }]) => [place, payout, after, spinId]),
      [...pots],
      [...told].map(([spin, { event }]) => [spin, event]).sort(),
      [...eventIds].sort(),
      [...choices].map(([key, { text }]) => [key, text]).sort(),
      [...forced.keys()].sort(),
    ],
    (_name, value: unknown) => (typeof value === 'bigint' ? `${value}` : value),
  );

/**
 * Returns the possible refusals of a spin whose requestId is not bound. The service may respond with any of
 * them.
 */
export function denialsOf(
  state: State,
  settings: Settings,
  game: Game | undefined,
  isSuspended: boolean,
  request: SpinRequest,
): string[] {
  if (game === undefined) return ['403 KS-4006'];
  if (isSuspended) return ['400 KS-4202'];
  if (!isSame(decimal(request.wager), game.sheet.denomination)) return ['400 KS-4103'];
  return refusals(state, settings, game, request.playerId);
}

/** Returns the possible refusals of a spin of an active game with the right wager. */
export function refusals(
  { players, net }: State,
  settings: Settings,
  { sheet }: Game,
  playerId: string,
): string[] {
  const { isEnforced, funding, opening } = settings;
  const balance = players.get(playerId)?.balance ?? opening;
  return [
    ...(isEnforced && balance < sheet.wager ? ['400 KS-4225'] : []),
    ...(funding !== null && funding - net < sheet.largestPayout ? ['503 KS-5011'] : []),
  ];
}

export const choiceKey = (gameId: number, playerId: string): string => `${gameId}:${playerId}`;

/** Returns the chosen outcome of the player's next spin of a game. Undefined if the outcome is drawn. */
export const choiceOf = (state: State, gameId: number, playerId: string): Combination | undefined =>
  state.choices.get(choiceKey(gameId, playerId));

/** Returns the testers' choices without the one that a spin used. */
function withoutChoice({ choices }: State, gameId: number, playerId: string): State['choices'] {
  const left = new Map(choices);
  left.delete(choiceKey(gameId, playerId));
  return left;
}

/**
 * Returns the state after a spin was dealt, with its chosen outcome if there is one. The spin is named by its
 * id, or by its index among the lost spins.
 */
export function dealt(
  state: State,
  spin: SpinName,
  request: SpinRequest,
  wager: bigint,
  payout: bigint,
  opening: bigint,
): State {
  const { playerId, requestId, gameId } = request;
  const player = state.players.get(playerId) ?? { opening, balance: opening, entries: [], untold: [] };
  const players = new Map(state.players).set(playerId, {
    ...player,
    balance: player.balance - wager + payout,
    entries: [...player.entries, spin],
  });
  const bound =
    requestId === undefined ? state.bound : new Map(state.bound).set(requestId, { spin, request });
  const choice = choiceOf(state, gameId, playerId);
  if (choice !== undefined) {
    const forced = new Map(state.forced).set(spin, choice);
    return { ...state, players, bound, forced, choices: withoutChoice(state, gameId, playerId) };
  }
  const pot = state.pots.get(gameId);
  const after = counted(players, pot, { name: spin, gameId, playerId });
  return {
    ...state,
    players: after.players,
    pots: after.pot === undefined ? state.pots : new Map(state.pots).set(gameId, after.pot),
    told: after.told === undefined ? state.told : new Map(state.told).set(spin, after.told),
    bound,
    net: state.net + payout - wager,
  };
}

/** Returns the balance after a spin, including the player's own share of an event that the spin fired. */
export const balanceWith = (balance: bigint, share: Share | undefined): bigint =>
  share?.isTrigger === true ? balance + share.amount : balance;

export const lostText = ({ payout, after }: LostDeal): string =>
  `that paid ${usd(payout)} and left ${usd(after)}`;

export function ones(mask: number): number {
  let count = 0;
  for (let left = mask; left > 0; left >>= 1) count += left & 1;
  return count;
}

/**
 * Checks the games of a partner in a response to GET /games.
 * @throws Violation
 */
export function judgeGames(exchange: Exchange, answer: Answer, known: readonly Game[]): void {
  const games = at(parsed(answer.text), 'games');
  const list = Array.isArray(games) ? (games as Json[]) : [];
  if (list.length !== known.length) fail(exchange, `There are ${known.length} games`);
  for (const { gameId, sheet, isSuspended } of known) {
    const json = list.find((each) => at(each, 'gameConfigId') === String(gameId));
    const possible = isSuspended.possible(exchange.front, exchange.sentAt);
    const statuses = possible.map((each) => (each ? 'SUSPENDED' : 'ACTIVE'));
    const wagers = ['minWagerUsd', 'maxWagerUsd', 'wagerIncrementUsd'].map((name) => amount(at(json, name)));
    const isRight =
      statuses.includes(at(json, 'status') as 'ACTIVE') && wagers.every((wager) => wager === sheet.wager);
    if (!isRight) fail(exchange, `Game ${gameId} is ${statuses.join(' or ')} at ${usd(sheet.wager)}`);
  }
}
