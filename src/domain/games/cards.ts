/**
 * Playing cards: their codes, their text, and the value of a hand in blackjack. A card is a code 0..51: rank
 * (0 = two … 8 = ten, 9 = jack, 10 = queen, 11 = king, 12 = ace) times 4, plus suit.
 */

export const DECK_CARDS = 52;

const RANKS = '23456789TJQKA';
const SUITS = 'shdc';
const ACE = 12;
const TEN = 8;

/** Formats a card as rank and suit, such as `Th` for the ten of hearts. */
export const cardText = (card: number): string => RANKS[card >> 2]! + SUITS[card & 3]!;

export const isAce = (card: number): boolean => card >> 2 === ACE;

/** Returns whether a card is a ten, jack, queen or king. */
export const isTen = (card: number): boolean => card >> 2 >= TEN && card >> 2 < ACE;

/** Returns the value of a card: 2..10, or 11 for an ace. */
export function cardValue(card: number): number {
  const rank = card >> 2;
  if (rank === ACE) return 11;
  return rank > TEN ? 10 : rank + 2;
}

/** Returns the best total of a hand: aces count 11 as long as the hand is not bust. */
export function handTotal(cards: readonly number[]): number {
  let total = 0;
  let aces = 0;
  for (let i = 0; i < cards.length; i++) {
    const value = cardValue(cards[i]!);
    if (value === 11) aces++;
    total += value;
  }
  for (; total > 21 && aces > 0; aces--) total -= 10;
  return total;
}

/** Returns whether an ace counts 11 in {@link handTotal}. */
export function isSoft(cards: readonly number[]): boolean {
  let hard = 0;
  let hasAce = false;
  for (let i = 0; i < cards.length; i++) {
    const value = cardValue(cards[i]!);
    if (value === 11) hasAce = true;
    hard += value === 11 ? 1 : value;
  }
  return hasAce && hard <= 11;
}

/** Returns whether the hand is a natural: an ace and a card worth ten as the first two cards. */
export const isNatural = (cards: readonly number[]): boolean =>
  cards.length === 2 && ((isAce(cards[0]!) && isTen(cards[1]!)) || (isTen(cards[0]!) && isAce(cards[1]!)));
