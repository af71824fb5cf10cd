/** List of all kinds of games. A new kind needs a definition (kindOfGame.ts) and a line here. */
import type { GameType, KindOfGame } from './kindOfGame.js';
import { RAFFLE } from './raffle.js';
import { SLOT } from './slot.js';
import { BLACKJACK } from './table.js';

export const KINDS_OF_GAMES: { readonly [T in GameType]: KindOfGame } = {
  slot: SLOT,
  raffle: RAFFLE,
  blackjack: BLACKJACK,
};

export const kindOfGame = (gameType: GameType): KindOfGame => KINDS_OF_GAMES[gameType];

/** Returns whether partners may register games of a type, which comes from a request. */
export const isRegisteredByPartner = (gameType: string): boolean =>
  Object.hasOwn(KINDS_OF_GAMES, gameType) && kindOfGame(gameType as GameType).registeredBy === 'partner';

/**
 * Returns whether a spin is answered only after the ledger has committed it.
 * @param kind undefined if the game is unknown
 */
export const waitsForLedger = (kind: KindOfGame | undefined, ack: 'redis' | 'replica' | 'ledger'): boolean =>
  ack === 'ledger' || kind?.acknowledgement === 'after-ledger-commit';
