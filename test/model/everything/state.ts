/**
 * The reference state of one partner. Money is in whole micro-USD, and lists are in the order in which their
 * elements occurred.
 */

/** A ledger entry of a player, in the form in which the operator's statement lists it. */
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
  /** The original text of the response. */
  readonly text: string;
  readonly wager: bigint;
  readonly payout: bigint;
  readonly prizeTier: number;
  readonly balance: bigint;
  readonly isForced: boolean;
}

export interface Share {
  readonly event: BonusEvent;
  readonly playerId: string;
  readonly amount: bigint;
  readonly isTrigger: boolean;
  /** The spin that notified the player of the share. */
  toldBy: string | null;
}

export interface BonusEvent {
  /** Id of the event. It is unknown until the notice of a spin contains it. */
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
  /** Payout of the round. Null while the round is open. */
  payout: bigint | null;
  balance: bigint;
  legal: readonly { readonly action: string; readonly cost: bigint }[];
  /** Actions so far. `lastText` is the text of the response to the last action. */
  readonly actions: string[];
  lastText: string;
  /** Cards of the dealer that responses have shown. */
  dealer: readonly string[];
}

export interface PlayerState {
  readonly playerId: string;
  balance: bigint;
  isBlocked: boolean;
  readonly entries: Entry[];
  /** Sequence number of the player's newest entry among the entries of all players. */
  newestEntry: number;
  readonly spins: Spin[];
  readonly rounds: Round[];
  readonly shares: Share[];
  /** Shares of which no spin has notified the player, oldest first. */
  readonly untold: Share[];
}

export interface BonusRules {
  readonly isEnabled: boolean;
  readonly interval: number;
  /** Part of an event's payout that the triggering player gets, in hundredths of a percent. */
  readonly triggerPart: bigint;
  readonly communitySize: number;
  readonly returnsToBudget: boolean;
  readonly paysRemaining: boolean;
  /** Tiers in the order of their levels. */
  readonly tiers: readonly { readonly name: string; readonly at: number; readonly amount: bigint }[];
}

export interface Pot {
  rules: BonusRules;
  version: number;
  progress: number;
  budget: bigint;
  paid: bigint;
  /** Players who spun since the communal progressive was first enabled, most recent first. */
  recent: string[];
  readonly events: BonusEvent[];
  readonly fundings: Map<string, { readonly amount: string; readonly text: string }>;
}

export interface Game {
  readonly gameId: number;
  readonly kind: 'slot' | 'raffle' | 'blackjack';
  readonly wager: bigint;
  isSuspended: boolean;
  /** True if the raffle was voided and its tickets are refunded. */
  isVoided: boolean;
  pot: Pot | undefined;
  /** Possible outcomes, each as the text `tier payout shown`. */
  readonly outcomes: ReadonlySet<string>;
  /** Number of tickets that are left of each outcome of a raffle. `ticketsLeft` is their total. */
  readonly left: Map<string, number>;
  ticketsLeft: number;
  totals: { spins: number; wagered: bigint; paid: bigint };
}

/** The response to which a request id is bound. */
export interface Bound {
  /** Text of the request, with which later requests under the same id are compared. */
  readonly request: string;
  readonly status: number;
  readonly text: string;
}

export interface Report {
  status: 'PENDING' | 'ACKNOWLEDGED' | 'DISPUTED';
  revision: number;
  /** The totals of the report, which never change. */
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
  readonly revoked: string[];
  /** The UTC day of the whole sequence. */
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

export const balanceOf = (state: State, playerId: string): bigint =>
  state.players.get(playerId)?.balance ?? state.opening;

export const isBlocked = (state: State, playerId: string): boolean =>
  state.players.get(playerId)?.isBlocked ?? false;

let booked = 0;

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
