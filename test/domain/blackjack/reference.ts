/**
 * A second implementation of blackjack that shares no code with the service. Cards are texts, each round is
 * replayed from its beginning by recursion, and money is counted in tenths of half a wager.
 */

export interface ReferenceRules {
  dealerHitsSoft17: boolean;
  blackjackPays: '3:2' | '6:5';
  doubleOn: 'any2' | '9-11';
  doubleAfterSplit: boolean;
  maxHands: number;
  resplitAces: boolean;
  hitSplitAces: boolean;
  peek: boolean;
  insurance: boolean;
  lateSurrender: boolean;
}

export interface ReferenceHand {
  cards: string[];
  stakes: number;
  fate: 'open' | 'later' | 'stood' | 'bust' | 'gaveUp' | 'natural';
}

export interface ReferenceRound {
  over: boolean;
  asksInsurance: boolean;
  dealer: string[];
  hands: ReferenceHand[];
  turn: number;
  /** The legal moves, sorted. */
  allowed: string[];
  /** Total stakes, in tenths of half a wager. */
  staked: number;
  returned: number;
}

/** Returns every possible total of a hand, with each ace counted as one or eleven. */
function totals(cards: string[]): number[] {
  let possible = [0];
  for (const card of cards) {
    const rank = card.slice(0, -1);
    const values = rank === 'A' ? [1, 11] : [/^[TJQK]$/.test(rank) ? 10 : Number(rank)];
    possible = possible.flatMap((sum) => values.map((value) => sum + value));
  }
  return possible;
}
const best = (cards: string[]): number => {
  const all = totals(cards);
  const alive = all.filter((total) => total <= 21);
  return alive.length > 0 ? Math.max(...alive) : Math.min(...all);
};
const lowest = (cards: string[]): number => Math.min(...totals(cards));
const worth = (card: string): number => best([card]);
const natural = (cards: string[]): boolean => cards.length === 2 && best(cards) === 21;

/** Returns the round after these moves, or undefined if one of them is illegal. */
export function reference(
  rules: ReferenceRules,
  shoe: string[],
  moves: string[],
): ReferenceRound | undefined {
  return new ReferenceGame(rules, [...shoe], [...moves]).play();
}

class ReferenceGame {
  private readonly bornOfSplit = new Set<ReferenceHand>();
  private readonly hands: ReferenceHand[];
  private readonly dealer: string[];
  private insured = false;

  constructor(
    private readonly rules: ReferenceRules,
    private readonly deck: string[],
    private readonly todo: string[],
  ) {
    const [first, up, second, hole] = this.deck.splice(0, 4) as [string, string, string, string];
    this.dealer = [up, hole];
    this.hands = [{ cards: [first, second], stakes: 1, fate: 'open' }];
  }

  play(): ReferenceRound | undefined {
    const { rules, dealer, hands, todo } = this;
    if (rules.insurance && dealer[0]!.startsWith('A')) {
      const move = todo.shift();
      if (move === undefined) return this.pending(-1, ['insurance', 'noInsurance']);
      if (move !== 'insurance' && move !== 'noInsurance') return undefined;
      this.insured = move === 'insurance';
    }
    const holdsNatural = natural(hands[0]!.cards);
    if (holdsNatural) hands[0]!.fate = 'natural';
    const dealerShows = rules.peek && worth(dealer[0]!) >= 10 && natural(dealer);
    if (dealerShows && !holdsNatural) hands[0]!.fate = 'stood';
    if (holdsNatural || dealerShows) return todo.length > 0 ? undefined : this.finish();
    for (let turn = 0; turn < hands.length; turn++) {
      const stopped = this.playHand(turn);
      if (stopped !== 'done') return stopped;
    }
    if (todo.length > 0) return undefined;
    if (hands.some(({ fate }) => fate === 'stood')) {
      const softSeventeen = (): boolean => best(dealer) === 17 && lowest(dealer) === 7;
      while (best(dealer) < 17 || (rules.dealerHitsSoft17 && softSeventeen()))
        dealer.push(this.deck.shift()!);
    }
    return this.finish();
  }

  private playHand(turn: number): ReferenceRound | undefined | 'done' {
    const hand = this.hands[turn]!;
    if (hand.fate === 'later') {
      hand.fate = 'open';
      hand.cards.push(this.deck.shift()!);
    }
    while (hand.fate === 'open') {
      if (best(hand.cards) > 21) hand.fate = 'bust';
      else if (best(hand.cards) === 21) hand.fate = 'stood';
      if (hand.fate !== 'open') break;
      const allowed = this.allowedFor(hand);
      if (allowed.length === 1 && this.bornOfSplit.has(hand)) {
        hand.fate = 'stood';
        break;
      }
      const move = this.todo.shift();
      if (move === undefined) return this.pending(turn, allowed);
      if (!allowed.includes(move)) return undefined;
      this.make(move, hand, turn);
    }
    return 'done';
  }

  private make(move: string, hand: ReferenceHand, turn: number): void {
    if (move === 'stand') hand.fate = 'stood';
    if (move === 'surrender') hand.fate = 'gaveUp';
    if (move === 'hit') hand.cards.push(this.deck.shift()!);
    if (move === 'double') {
      hand.stakes = 2;
      hand.cards.push(this.deck.shift()!);
      hand.fate = best(hand.cards) > 21 ? 'bust' : 'stood';
    }
    if (move === 'split') {
      const other: ReferenceHand = { cards: [hand.cards[1]!], stakes: 1, fate: 'later' };
      hand.cards = [hand.cards[0]!, this.deck.shift()!];
      this.bornOfSplit.add(hand).add(other);
      this.hands.splice(turn + 1, 0, other);
    }
  }

  private allowedFor(hand: ReferenceHand): string[] {
    const { rules, hands, bornOfSplit } = this;
    const isPair = hand.cards.length === 2 && worth(hand.cards[0]!) === worth(hand.cards[1]!);
    const splitAce = bornOfSplit.has(hand) && hand.cards[0]!.startsWith('A');
    const frozen = splitAce && !rules.hitSplitAces;
    const moves = ['stand'];
    if (!frozen) moves.push('hit');
    const total = lowest(hand.cards);
    const hasAce = hand.cards.some((card) => card.startsWith('A'));
    const inRange = rules.doubleOn === 'any2' || (!hasAce && total >= 9 && total <= 11);
    if (hand.cards.length === 2 && !frozen && inRange && (rules.doubleAfterSplit || !bornOfSplit.has(hand)))
      moves.push('double');
    if (isPair && hands.length < rules.maxHands && (!splitAce || rules.resplitAces)) moves.push('split');
    if (rules.lateSurrender && hands.length === 1 && hand.cards.length === 2) moves.push('surrender');
    return moves;
  }

  private finish(): ReferenceRound {
    const { rules, dealer, hands, insured } = this;
    let returned = insured && natural(dealer) ? 30 : 0;
    let staked = insured ? 10 : 0;
    for (const { cards, stakes, fate } of hands) {
      const stake = 20 * stakes;
      staked += stake;
      if (fate === 'gaveUp') returned += 10;
      else if (fate === 'natural' && natural(dealer)) returned += stake;
      else if (fate === 'natural') returned += rules.blackjackPays === '3:2' ? 50 : 44;
      else if (fate === 'bust' || natural(dealer)) returned += 0;
      else if (best(dealer) > 21 || best(cards) > best(dealer)) returned += 2 * stake;
      else if (best(cards) === best(dealer)) returned += stake;
    }
    return { over: true, asksInsurance: false, dealer, hands, turn: -1, allowed: [], staked, returned };
  }

  private pending(turn: number, allowed: string[]): ReferenceRound {
    const { dealer, hands, insured } = this;
    return {
      over: false,
      asksInsurance: turn < 0,
      dealer,
      hands,
      turn,
      allowed: allowed.sort(),
      staked: hands.reduce((sum, { stakes }) => sum + 20 * stakes, insured ? 10 : 0),
      returned: 0,
    };
  }
}
