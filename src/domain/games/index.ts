/** The kinds of games that there are. A new kind is a definition (kindOfGame.ts) and a line here. */
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

/** Whether a partner may register a game of the type that a request names. */
export const isRegisteredByPartner = (gameType: string): boolean =>
  Object.hasOwn(KINDS_OF_GAMES, gameType) && kindOfGame(gameType as GameType).registeredBy === 'partner';

/** Whether a spin is answered only once the ledger has it. @param kind undefined: the game is not known */
export const waitsForLedger = (kind: KindOfGame | undefined, ack: 'redis' | 'replica' | 'ledger'): boolean =>
  ack === 'ledger' || kind?.acknowledgement === 'after-ledger-commit';
