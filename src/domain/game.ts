/** A registered game and its partner, as the front end holds them in memory to judge and answer spins. */
import type { GameStatus, KindOfGame } from './games/kindOfGame.js';
import type { BlackjackTable } from './games/tableTerms.js';

export type BalanceMode = 'track' | 'enforce';
export type Environment = 'sandbox' | 'production';

export interface Partner {
  readonly partnerId: number;
  readonly slug: string;
  readonly name: string;
  readonly environment: Environment;
  readonly isActive: boolean;
  /** The cell whose keys in Redis hold this partner, 0..255. */
  readonly cell: number;
  /** Requests per epoch minute. */
  readonly spinRateLimit: number;
  readonly apiRateLimit: number;
  readonly openingBalanceMicros: number;
  readonly balanceMode: BalanceMode;
  /** What the operator covers for this partner; null: no bound. */
  readonly fundingMicros: number | null;
  /** Cells that it lived in before; absent: none. */
  readonly formerCells?: readonly FormerCell[];
  /** Number of its newest move that is done; absent or 0: it never moved. */
  readonly newestMove?: number;
}

/** A cell that a partner has left. */
export interface FormerCell {
  readonly cell: number;
  /** No entry of the partner's in that cell is after this one. */
  readonly untilId: bigint;
}

export interface ApiKey {
  readonly keyId: number;
  readonly partnerId: number;
  /** Milliseconds since the epoch; null: never. */
  readonly expiresAtMs: number | null;
  readonly isRevoked: boolean;
}

export interface Game {
  readonly gameId: number;
  readonly partnerId: number;
  readonly kind: KindOfGame;
  readonly status: GameStatus;
  /** Outcomes of its whole supply; 0: it is endless. */
  readonly poolSize: number;
  /** What all prizes of a raffle come to, as a fraction of the price of all tickets. */
  readonly poolRtp?: number | null;
  /** When a finite supply was sealed, ms since the epoch; no outcome of it was dealt before. */
  readonly sealedAtMs: number | undefined;
  readonly wagerMicros: number;
  readonly maxPayoutMicros: number;
  /** Micro-USD paid by each outcome code: signed 64-bit little-endian integers, as lua/deal.lua reads them. */
  readonly payoutTable: Buffer;
  /** The same as numbers. */
  readonly payoutMicros: readonly number[];
  /** The members `outcome` and `presentation` of a response for each outcome code, as UTF-8 JSON. */
  readonly fragments: readonly Buffer[];
  /** Of a game that is played in rounds; undefined: it is spun. */
  readonly table?: BlackjackTable | undefined;
}

/** By game and outcome code, as far as they were asked for. */
const prizeTiers = new WeakMap<Pick<Game, 'fragments'>, (number | undefined)[]>();

/**
 * The prize tier of an outcome, as its fragment tells it; read once for each outcome code.
 * @throws Error where the game has no such outcome.
 */
export function prizeTierOf(game: Pick<Game, 'gameId' | 'fragments'>, outcomeCode: number): number {
  let tiers = prizeTiers.get(game);
  if (tiers === undefined) {
    tiers = [];
    prizeTiers.set(game, tiers);
  }
  const known = tiers[outcomeCode];
  if (known !== undefined) return known;
  const fragment = game.fragments[outcomeCode];
  if (fragment === undefined)
    throw new Error(`The outcome ${outcomeCode} of game ${game.gameId} is not known`);
  const { outcome } = JSON.parse(`{${fragment.toString()}}`) as { outcome: { prizeTier: number } };
  tiers[outcomeCode] = outcome.prizeTier;
  return outcome.prizeTier;
}
