import { cardText, DECK_CARDS } from '../../../src/domain/games/cards.js';

const CODES = new Map(Array.from({ length: DECK_CARDS }, (_, card) => [cardText(card), card]));

/**
 * Returns the code of a card named by rank and suit, such as `Th`.
 * @throws RangeError if the text is not the name of a card
 */
export function cardOf(text: string): number {
  const card = CODES.get(text);
  if (card === undefined) throw new RangeError(`«${text}» is no card`);
  return card;
}
