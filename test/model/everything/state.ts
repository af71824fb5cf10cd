/** What the reference knows of one partner. Money is whole micro-USD; order is the order in which things were done. */

/** A ledger entry of a player, as the operator's statement lists it. */
export interface Entry {
  readonly kind: string;
  readonly gameId: number | null;
  readonly wager: bigint;
  readonly credit: bigint;
  readonly balance: bigint;
  readonly requestId: string | null;
  readonly spinId: string | null;
}

export interface Spin {
  readonly spinId: string;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  /** The answer as it came. */
  readonly text: string;
  readonly wager: bigint;
  readonly payout: bigint;
  readonly prizeTier: number;
  readonly balance: bigint;
  readonly isForced: boolean;
}

/** A player's part of an event of a communal progressive. */
export interface Share {
  readonly event: BonusEvent;
  readonly playerId: string;
  readonly amount: bigint;
  readonly isTrigger: boolean;
  /** The spin that told it. */
  toldBy: string | null;
}

export interface BonusEvent {
  /** Known once a spin told it. */
  eventId: string | undefined;
  readonly gameId: number;
  readonly level: number;
  readonly name: string;
  readonly total: bigint;
  readonly isSkipped: boolean;
  readonly shares: Share[];
}

export interface Round {
  readonly roundId: string;
  readonly gameId: number;
  readonly playerId: string;
  status: string;
  lastActionSeq: number;
  wagered: bigint;
  /** What was paid; null while the round is open. */
  payout: bigint | null;
  balance: bigint;
  legal: readonly { readonly action: string; readonly cost: bigint }[];
  /** Actions so far, and the last with its answer. */
  readonly actions: string[];
  lastText: string;
  /** Cards of the dealer and of the first hand that were shown. */
  dealer: readonly string[];
}

export interface PlayerState {
  readonly playerId: string;
  balance: bigint;
  isBlocked: boolean;
  readonly entries: Entry[];
  /** Numbers the newest entry among those of all players. */
  newestEntry: number;
  readonly spins: Spin[];
  readonly rounds: Round[];
  readonly shares: Share[];
  /** Shares that no spin has told, oldest first. */
  readonly untold: Share[];
}

/** The rules of a communal progressive. */
export interface BonusRules {
  readonly isEnabled: boolean;
  readonly interval: number;
  /** Of who fires, in hundredths of a percent. */
  readonly triggerPart: bigint;
  readonly communitySize: number;
  readonly returnsToBudget: boolean;
  readonly paysRemaining: boolean;
  /** By level. */
  readonly tiers: readonly { readonly name: string; readonly at: number; readonly amount: bigint }[];
}

/** A communal progressive. */
export interface Pot {
  rules: BonusRules;
  version: number;
  progress: number;
  budget: bigint;
  paid: bigint;
  /** Who spun since it was first enabled, the most recent first. */
  recent: string[];
  readonly events: BonusEvent[];
  readonly fundings: Map<string, { readonly amount: string; readonly text: string }>;
}

export interface Game {
  readonly gameId: number;
  readonly kind: 'slot' | 'raffle' | 'blackjack';
  readonly wager: bigint;
  isSuspended: boolean;
  /** Of a raffle: its tickets are refunded. */
  isVoided: boolean;
  pot: Pot | undefined;
  /** What it may pay, by what it shows: `tier payout shown`. */
  readonly outcomes: ReadonlySet<string>;
  /** Of a raffle: how many tickets of each outcome are left, and how many in all. */
  readonly left: Map<string, number>;
  ticketsLeft: number;
  totals: { spins: number; wagered: bigint; paid: bigint };
}

/** What a request id is bound to. */
export interface Bound {
  /** The request, so that another under the same id is known for what it is. */
  readonly request: string;
  readonly status: number;
  readonly text: string;
}

export interface Report {
  status: 'PENDING' | 'ACKNOWLEDGED' | 'DISPUTED';
  revision: number;
  /** The totals that it had, which never change. */
  readonly totals: string;
}

export interface LargeWin {
  readonly id: string;
  readonly gameId: number;
  readonly playerId: string;
  readonly payout: bigint;
}

export interface State {
  readonly opening: bigint;
  readonly isEnforced: boolean;
  readonly threshold: bigint;
  /** Rows that lists are read by at a time. */
  readonly pageSize: number;
  readonly games: readonly Game[];
  readonly players: Map<string, PlayerState>;
  /** Spins and tickets of all players. */
  readonly spins: Spin[];
  readonly bound: Map<string, Bound>;
  readonly adjusted: Map<string, Bound>;
  readonly largeWins: LargeWin[];
  /** Outcomes that testers chose: `game player` → `tier payout shown`. */
  readonly forced: Map<string, string>;
  adjustments: bigint;
  report: Report | undefined;
  /** Keys that are revoked. */
  readonly revoked: string[];
  /** The UTC day on which all of it is done. */
  readonly day: string;
}

export function playerOf(state: State, playerId: string): PlayerState {
  const known = state.players.get(playerId);
  if (known !== undefined) return known;
  const player: PlayerState = {
    playerId,
    balance: state.opening,
    isBlocked: false,
    entries: [],
    newestEntry: 0,
    spins: [],
    rounds: [],
    shares: [],
    untold: [],
  };
  state.players.set(playerId, player);
  return player;
}

/** What a player has, whether it was seen before or not. */
export const balanceOf = (state: State, playerId: string): bigint =>
  state.players.get(playerId)?.balance ?? state.opening;

export const isBlocked = (state: State, playerId: string): boolean =>
  state.players.get(playerId)?.isBlocked ?? false;

let booked = 0;

/** Moves a balance and notes the entry. */
export function book(
  player: PlayerState,
  { kind, gameId, wager = 0n, credit = 0n, requestId, spinId }: Booking,
): void {
  player.balance += credit - wager;
  const { balance } = player;
  const ids = { gameId: gameId ?? null, requestId: requestId ?? null, spinId: spinId ?? null };
  player.newestEntry = ++booked;
  player.entries.push({ kind, wager, credit, balance, ...ids });
}

interface Booking {
  readonly kind: string;
  readonly gameId?: number;
  readonly wager?: bigint;
  readonly credit?: bigint;
  readonly requestId?: string | undefined;
  readonly spinId?: string;
}
