/**
 * A round of blackjack as a pure state machine: rules + shoe + actions = state.
 *
 *   state       what may happen                                   next state
 *   (none)      deal; the dealer shows an ace, insurance offered  INSURANCE
 *               deal; the dealer peeks and has a natural          SETTLED
 *               deal; the player has a natural                    SETTLED
 *               deal; otherwise                                   PLAYER
 *   INSURANCE   insurance | noInsurance | timeout                 as after a deal without insurance
 *   PLAYER      hit, stand, double, split, surrender (if legal)   PLAYER until all hands are played; SETTLED
 *               timeout: all hands still in play stand            SETTLED
 *   SETTLED     nothing
 *
 *   a hand      WAITING ──becomes active, draws its second card──> ACTIVE ──> STOOD | BUST | SURRENDERED
 *               NATURAL at the deal
 *
 * Voiding a round is not part of this machine, because a void does not depend on the cards.
 */
import type { BlackjackRules } from './blackjackRules.js';
import { cardValue, handTotal, isAce, isNatural, isSoft, isTen } from './cards.js';

export type Phase = 'INSURANCE' | 'PLAYER' | 'SETTLED';
export type HandStatus = 'WAITING' | 'ACTIVE' | 'STOOD' | 'BUST' | 'SURRENDERED' | 'NATURAL';

export const ACTIONS = ['hit', 'stand', 'double', 'split', 'insurance', 'noInsurance', 'surrender'] as const;
export type Action = (typeof ACTIONS)[number];

/** A move of a round: an action of the player, or the timeout that ends the round. */
export type Move = Action | 'timeout';

export interface Hand {
  readonly cards: readonly number[];
  readonly status: HandStatus;
  readonly isDoubled: boolean;
  readonly isFromSplit: boolean;
}

export interface Round {
  readonly rules: BlackjackRules;
  readonly phase: Phase;
  /** Cards of the dealer: the up card, the hole card, and the cards that the dealer draws. */
  readonly dealer: readonly number[];
  readonly hands: readonly Hand[];
  /** Index of the hand being played. Undefined outside the phase PLAYER. */
  readonly activeHand: number | undefined;
  /** Whether insurance was taken. Undefined while it was neither taken nor declined. */
  readonly isInsured: boolean | undefined;
  readonly drawn: number;
}

/** Additional stake of an action, in units of half the wager. */
export const COST_HALVES: Readonly<Record<Action, number>> = {
  hit: 0,
  stand: 0,
  double: 2,
  split: 2,
  insurance: 1,
  noInsurance: 0,
  surrender: 0,
};

/** Thrown when an action is not legal in the state of the round. The state is unchanged. */
export class IllegalActionError extends Error {}

/**
 * @param shoe cards in dealing order: the first and third go to the player, the second (up) and fourth to the
 * dealer
 * @throws IllegalActionError if a move is not legal
 */
export function replayRound(rules: BlackjackRules, shoe: ArrayLike<number>, moves: readonly Move[]): Round {
  const round = new PlayedRound(rules, shoe);
  for (const move of moves) round.move(move);
  return round;
}

/** Lists the legal actions in the order of {@link ACTIONS}. */
export function legalActions(round: Round): Action[] {
  return ACTIONS.filter((action) => isLegal(round, action));
}

export function isLegal(round: Round, action: Action): boolean {
  const { rules, phase, hands, activeHand } = round;
  if (phase === 'INSURANCE') return action === 'insurance' || action === 'noInsurance';
  if (phase !== 'PLAYER') return false;
  const hand = hands[activeHand!]!;
  const { cards, isFromSplit } = hand;
  const isLocked = isFromSplit && isAce(cards[0]!) && !rules.hitSplitAces;
  switch (action) {
    case 'hit':
      return !isLocked;
    case 'stand':
      return true;
    case 'double':
      return (
        cards.length === 2 &&
        !isLocked &&
        (rules.doubleAfterSplit || !isFromSplit) &&
        (rules.doubleOn === 'any2' || isHard9To11(cards))
      );
    case 'split':
      return (
        cards.length === 2 &&
        cardValue(cards[0]!) === cardValue(cards[1]!) &&
        hands.length < rules.maxHands &&
        (rules.resplitAces || !isFromSplit || !isAce(cards[0]!))
      );
    case 'surrender':
      return rules.lateSurrender && hands.length === 1 && cards.length === 2;
    default:
      return false;
  }
}

export interface RoundMoney {
  /** Sum of all stakes of the round including insurance, in micro-USD. */
  readonly wageredMicros: number;
  /** Total payout including returned stakes. Undefined before the round is settled. */
  readonly payoutMicros: number | undefined;
}

/**
 * @param wagerMicros the game's wager; half of it and the payout of a natural must be whole micro-USD
 * (`stakeFault`)
 */
export function roundMoney(round: Round, wagerMicros: number): RoundMoney {
  const half = wagerMicros / 2;
  let wageredMicros = round.isInsured === true ? half : 0;
  for (const hand of round.hands) wageredMicros += stakeOf(hand, wagerMicros);
  if (round.phase !== 'SETTLED') return { wageredMicros, payoutMicros: undefined };
  let payoutMicros = round.isInsured === true && isNatural(round.dealer) ? 3 * half : 0;
  for (const hand of round.hands) payoutMicros += handPayoutMicros(round, hand, wagerMicros);
  return { wageredMicros, payoutMicros };
}

export const stakeOf = ({ isDoubled }: Hand, wagerMicros: number): number =>
  isDoubled ? 2 * wagerMicros : wagerMicros;

/** Returns the payout of a hand in a settled round, including its stake, in micro-USD. */
export function handPayoutMicros({ rules, dealer }: Round, hand: Hand, wagerMicros: number): number {
  const stake = stakeOf(hand, wagerMicros);
  if (hand.status === 'SURRENDERED') return wagerMicros / 2;
  if (hand.status === 'BUST') return 0;
  if (isNatural(dealer)) return hand.status === 'NATURAL' ? stake : 0;
  if (hand.status === 'NATURAL')
    return rules.blackjackPays === '3:2' ? stake + (stake / 2) * 3 : stake + (stake / 5) * 6;
  const ours = handTotal(hand.cards);
  const theirs = handTotal(dealer);
  if (theirs > 21 || ours > theirs) return 2 * stake;
  return ours === theirs ? stake : 0;
}

// The state machine ----------------------------------------------------------------------------------------

interface OpenHand extends Hand {
  cards: number[];
  status: HandStatus;
  isDoubled: boolean;
  isFromSplit: boolean;
}

/** A mutable round, for callers that play one move after another without replaying the earlier moves. */
export class PlayedRound implements Round {
  phase: Phase = 'PLAYER';
  readonly dealer: number[] = [];
  readonly hands: OpenHand[] = [];
  activeHand: number | undefined = 0;
  isInsured: boolean | undefined;
  drawn = 0;

  constructor(
    readonly rules: BlackjackRules,
    private readonly shoe: ArrayLike<number>,
  ) {
    const first = this.#draw();
    this.dealer.push(this.#draw());
    this.hands.push(newHand([first, this.#draw()], false, 'ACTIVE'));
    this.dealer.push(this.#draw());
    if (this.rules.insurance && isAce(this.dealer[0]!)) {
      this.phase = 'INSURANCE';
      this.activeHand = undefined;
    } else {
      this.#begin();
    }
  }

  /**
   * Plays a move.
   * @throws IllegalActionError if the move is not legal now; the round is unchanged in that case
   */
  move(move: Move): void {
    if (move === 'timeout') {
      this.#timeOut();
      return;
    }
    if (!isLegal(this, move)) throw new IllegalActionError(`${move} is not legal now`);
    if (move === 'insurance' || move === 'noInsurance') {
      this.isInsured = move === 'insurance';
      this.#begin();
      return;
    }
    const hand = this.hands[this.activeHand!]!;
    switch (move) {
      case 'hit':
        hand.cards.push(this.#draw());
        break;
      case 'double':
        hand.isDoubled = true;
        hand.cards.push(this.#draw());
        hand.status = 'STOOD';
        break;
      case 'stand':
        hand.status = 'STOOD';
        break;
      case 'surrender':
        hand.status = 'SURRENDERED';
        break;
      case 'split':
        this.#split(hand);
        break;
    }
    this.#goOn();
  }

  /**
   * Continues after the deal and the decision on insurance, with the dealer's peek and the player's natural.
   */
  #begin(): void {
    const [up] = this.dealer;
    const hand = this.hands[0]!;
    if (isNatural(hand.cards)) hand.status = 'NATURAL';
    const isPeeked = this.rules.peek && (isAce(up!) || isTen(up!)) && isNatural(this.dealer);
    if (isPeeked && hand.status === 'ACTIVE') hand.status = 'STOOD';
    if (hand.status === 'ACTIVE') {
      this.phase = 'PLAYER';
      this.activeHand = 0;
    } else {
      this.#settle();
    }
  }

  #split(hand: OpenHand): void {
    const moved = newHand([hand.cards.pop()!], true, 'WAITING');
    hand.isFromSplit = true;
    this.hands.splice(this.activeHand! + 1, 0, moved);
    hand.cards.push(this.#draw());
  }

  /**
   * Ends the active hand if no decision is left for it, and activates the next hand, until a hand has a
   * decision left.
   */
  #goOn(): void {
    for (;;) {
      const hand = this.hands[this.activeHand!]!;
      const total = handTotal(hand.cards);
      if (total > 21) hand.status = 'BUST';
      else if (hand.status === 'ACTIVE' && (total === 21 || !this.#canDecide(hand))) hand.status = 'STOOD';
      if (hand.status === 'ACTIVE') return;
      const next = this.hands.findIndex(({ status }) => status === 'WAITING');
      if (next < 0) break;
      this.activeHand = next;
      this.hands[next]!.status = 'ACTIVE';
      this.hands[next]!.cards.push(this.#draw());
    }
    const needsDealer = this.hands.some(({ status }) => status === 'STOOD');
    if (needsDealer) this.#playDealer();
    this.#settle();
  }

  /**
   * Returns whether a hand has a decision left. A split ace that may be neither hit nor split again can only
   * stand.
   */
  #canDecide({ cards, isFromSplit }: OpenHand): boolean {
    return !isFromSplit || !isAce(cards[0]!) || this.rules.hitSplitAces || isLegal(this, 'split');
  }

  #playDealer(): void {
    for (;;) {
      const total = handTotal(this.dealer);
      const hits = total < 17 || (total === 17 && this.rules.dealerHitsSoft17 && isSoft(this.dealer));
      if (!hits) return;
      this.dealer.push(this.#draw());
    }
  }

  #timeOut(): void {
    if (this.phase === 'SETTLED') throw new IllegalActionError('the round has ended');
    if (this.phase === 'INSURANCE') this.move('noInsurance');
    // The type checker can't see that a move changes the phase.
    while ((this.phase as Phase) === 'PLAYER') this.move('stand');
  }

  #settle(): void {
    this.phase = 'SETTLED';
    this.activeHand = undefined;
  }

  #draw(): number {
    const card = this.shoe[this.drawn];
    if (card === undefined) throw new RangeError('the shoe is empty');
    this.drawn++;
    return card;
  }
}

const newHand = (cards: number[], isFromSplit: boolean, status: HandStatus): OpenHand => ({
  cards,
  status,
  isDoubled: false,
  isFromSplit,
});

function isHard9To11(cards: readonly number[]): boolean {
  const total = handTotal(cards);
  return total >= 9 && total <= 11 && !isSoft(cards);
}
