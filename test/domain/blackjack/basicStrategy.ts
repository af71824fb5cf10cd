/**
 * Basic strategy by the total of the hand, from the published tables, for six decks and for one deck. The
 * dealer stands on soft 17, and double after split is allowed. Also simulates many rounds of this strategy
 * with a fast generator and a fixed seed.
 */
import {
  isLegal,
  type Move,
  PlayedRound,
  type Round,
  roundMoney,
} from '../../../src/domain/games/blackjack.js';
import type { BlackjackRules } from '../../../src/domain/games/blackjackRules.js';
import { cardValue, DECK_CARDS, handTotal, isSoft } from '../../../src/domain/games/cards.js';

/**
 * Action for each up card 2, 3, … 10, ace, as one letter: H hit, S stand, D double or hit, E double or stand,
 * P split, - don't split.
 */
type Row = string;

interface Strategy {
  readonly hard: Readonly<Record<number, Row>>;
  readonly soft: Readonly<Record<number, Row>>;
  readonly pairs: Readonly<Record<number, Row>>;
}

const HARD_FROM_12: Readonly<Record<number, Row>> = {
  12: 'HHSSSHHHHH',
  13: 'SSSSSHHHHH',
  14: 'SSSSSHHHHH',
  15: 'SSSSSHHHHH',
  16: 'SSSSSHHHHH',
};

export const SIX_DECKS: Strategy = {
  hard: { 9: 'HDDDDHHHHH', 10: 'DDDDDDDDHH', 11: 'DDDDDDDDDH', ...HARD_FROM_12 },
  soft: {
    12: 'HHHHHHHHHH',
    13: 'HHHDDHHHHH',
    14: 'HHHDDHHHHH',
    15: 'HHDDDHHHHH',
    16: 'HHDDDHHHHH',
    17: 'HDDDDHHHHH',
    18: 'SEEEESSHHH',
  },
  pairs: {
    2: 'PPPPPP----',
    3: 'PPPPPP----',
    4: '---PP-----',
    6: 'PPPPP-----',
    7: 'PPPPPP----',
    8: 'PPPPPPPPPP',
    9: 'PPPPP-PP--',
    11: 'PPPPPPPPPP',
  },
};

export const ONE_DECK: Strategy = {
  hard: { 8: 'HHHDDHHHHH', 9: 'DDDDDHHHHH', 10: 'DDDDDDDDHH', 11: 'DDDDDDDDDD', ...HARD_FROM_12 },
  soft: {
    12: 'HHHHHHHHHH',
    13: 'HHDDDHHHHH',
    14: 'HHDDDHHHHH',
    15: 'HHDDDHHHHH',
    16: 'HHDDDHHHHH',
    17: 'DDDDDHHHHH',
    18: 'SEEEESSHHS',
    19: 'SSSSESSSSS',
  },
  pairs: {
    2: 'PPPPPP----',
    3: 'PPPPPPP---',
    4: '--PPP-----',
    6: 'PPPPPP----',
    7: 'PPPPPPP-S-',
    8: 'PPPPPPPPPP',
    9: 'PPPPP-PP--',
    11: 'PPPPPPPPPP',
  },
};

function basicMove(round: Round, strategy: Strategy): Move {
  if (round.phase === 'INSURANCE') return 'noInsurance';
  const { cards } = round.hands[round.activeHand!]!;
  const column = cardValue(round.dealer[0]!) - 2;
  if (cards.length === 2 && cardValue(cards[0]!) === cardValue(cards[1]!)) {
    const letter = strategy.pairs[cardValue(cards[0]!)]?.[column];
    if (letter === 'P' && isLegal(round, 'split')) return 'split';
    if (letter === 'S') return 'stand';
  }
  const total = handTotal(cards);
  const soft = isSoft(cards);
  const letter =
    (soft ? strategy.soft : strategy.hard)[total]?.[column] ?? (total < (soft ? 18 : 12) ? 'H' : 'S');
  if (letter === 'D' || letter === 'E') {
    if (isLegal(round, 'double')) return 'double';
    return letter === 'D' && isLegal(round, 'hit') ? 'hit' : 'stand';
  }
  return letter === 'H' && isLegal(round, 'hit') ? 'hit' : 'stand';
}

/**
 * The generator xoshiro128**, which is fast and good enough for a simulation. The service itself uses the
 * random numbers of the operating system.
 */
export function generator(seed: number): (below: number) => number {
  let a = seed | 0;
  let b = 0x9e3779b9 | 0;
  let c = 0x243f6a88 | 0;
  let d = 0xb7e15162 | 0;
  const next = (below: number): number => {
    let x = Math.imul(b, 5);
    x = Math.imul((x << 7) | (x >>> 25), 9);
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = (d << 11) | (d >>> 21);
    return Math.floor((x >>> 0) * 2.3283064365386963e-10 * below);
  };
  for (let i = 0; i < 20; i++) next(1);
  return next;
}

/**
 * Number of cards that suffices for almost every round. A round that needs more is replayed with the same
 * first cards.
 */
const FIRST_CARDS = 14;

/** A simulated shoe, of which only the first cards are drawn, again for each round. */
export class SimulatedShoe {
  readonly #cards: Uint8Array;
  readonly #first: Uint8Array;
  readonly #below: (below: number) => number;

  constructor(decks: number, seed: number) {
    this.#cards = Uint8Array.from({ length: decks * DECK_CARDS }, (_, i) => i % DECK_CARDS);
    this.#first = this.#cards.subarray(0, FIRST_CARDS);
    this.#below = generator(seed);
  }

  /** Plays a round with new cards. */
  play<T>(round: (shoe: Uint8Array) => T): T {
    this.#draw(0, FIRST_CARDS);
    try {
      return round(this.#first);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#draw(FIRST_CARDS, this.#cards.length - 1);
      return round(this.#cards);
    }
  }

  #draw(from: number, to: number): void {
    const cards = this.#cards;
    for (let i = from; i < to; i++) {
      const j = i + this.#below(cards.length - i);
      const card = cards[i]!;
      cards[i] = cards[j]!;
      cards[j] = card;
    }
  }
}

const WAGER = 10;

/**
 * Mean and standard error of the house's gain, and the mean of all stakes, as shares of the initial wager.
 */
export function houseEdge(rules: BlackjackRules, strategy: Strategy, rounds: number, seed: number) {
  const shoe = new SimulatedShoe(rules.decks, seed);
  let sum = 0;
  let squares = 0;
  let staked = 0;
  const play = (cards: Uint8Array): number => {
    const round = new PlayedRound(rules, cards);
    while (round.phase !== 'SETTLED') round.move(basicMove(round, strategy));
    const { wageredMicros, payoutMicros } = roundMoney(round, WAGER);
    staked += wageredMicros;
    return wageredMicros - payoutMicros!;
  };
  for (let i = 0; i < rounds; i++) {
    const gain = shoe.play(play);
    sum += gain;
    squares += gain * gain;
  }
  const mean = sum / rounds;
  const deviation = Math.sqrt(squares / rounds - mean * mean);
  return {
    edge: mean / WAGER,
    standardError: deviation / WAGER / Math.sqrt(rounds),
    stakesPerRound: staked / WAGER / rounds,
  };
}
