/** What may be the case with a partner: players, balances, bound requestIds. States are never changed in place. */
import type { Changing } from './changing.js';
import { decimal, isSame } from './decimal.js';
import type { SpinRequest } from './exchange.js';
import type { Sheet } from './sheet.js';

export interface Settings {
  readonly isActive: boolean;
  readonly spinRateLimit: number;
  readonly apiRateLimit: number;
  readonly opening: bigint;
  readonly isEnforced: boolean;
  /** null: no bound. */
  readonly funding: bigint | null;
}

export interface Game {
  readonly gameId: number;
  readonly sheet: Sheet;
  readonly isSuspended: Changing<boolean>;
  /** Which symbol stands at which stop, as far as it was shown. */
  readonly strip: Map<string, string>;
}

/** A spin of which no answer came. */
export interface Lost {
  readonly request: SpinRequest;
  readonly sentAt: number;
}

/** A lost spin that was dealt. */
export interface LostDeal {
  readonly payout: bigint;
  readonly after: bigint;
  /** Once an answer has told. */
  readonly spinId?: string;
}

export interface Player {
  readonly opening: bigint;
  readonly balance: bigint;
  /** Its spins in order: a spin id, or the place of a lost spin. */
  readonly spins: readonly (string | number)[];
}

export interface Bound {
  readonly spin: string | number;
  readonly request: SpinRequest;
}

/** What may be the case. Never changed in place. */
export interface State {
  readonly players: ReadonlyMap<string, Player>;
  /** The spin of each requestId, and the request that it answered. */
  readonly bound: ReadonlyMap<string, Bound>;
  /** The lost spins that were dealt. */
  readonly lostDeals: ReadonlyMap<number, LostDeal>;
  /** Paid out less wagered. */
  readonly net: bigint;
}

/** The states without repeats. */
export const union = (states: readonly State[]): State[] =>
  states.length <= 1 ? [...states] : [...new Map(states.map((state) => [keyOf(state), state])).values()];

const keyOf = ({ players, lostDeals }: State): string =>
  JSON.stringify([
    [...players].map(([id, { opening, balance, spins }]) => [id, `${opening}`, `${balance}`, spins]).sort(),
    [...lostDeals].map(([place, { payout, after, spinId }]) => [place, `${payout}`, `${after}`, spinId]),
  ]);

/** What stands against a spin whose requestId is not bound; any of several may be said. */
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

/** What stands against an active game's spin at its wager. */
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

/** The state after a spin was dealt; it is known by its id, or by its place among the lost. */
export function dealt(
  state: State,
  spin: string | number,
  request: SpinRequest,
  wager: bigint,
  payout: bigint,
  opening: bigint,
): State {
  const { playerId, requestId } = request;
  const player = state.players.get(playerId) ?? { opening, balance: opening, spins: [] };
  return {
    players: new Map(state.players).set(playerId, {
      opening: player.opening,
      balance: player.balance - wager + payout,
      spins: [...player.spins, spin],
    }),
    bound: requestId === undefined ? state.bound : new Map(state.bound).set(requestId, { spin, request }),
    lostDeals: state.lostDeals,
    net: state.net + payout - wager,
  };
}
