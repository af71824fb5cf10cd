/**
 * Types of a registered game and its partner, as a front end has them in memory to check and answer spins.
 */
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
  /** Cell in Redis that has this partner's data, 0..255. */
  readonly cell: number;
  /** Maximum number of requests in a minute. Minutes are counted from the epoch. */
  readonly spinRateLimit: number;
  readonly apiRateLimit: number;
  readonly openingBalanceMicros: number;
  readonly balanceMode: BalanceMode;
  /** Maximum loss that the operator covers for this partner, in micro-USD. Null means no limit. */
  readonly fundingMicros: number | null;
  /** Absent if there are none. */
  readonly formerCells?: readonly FormerCell[];
  /** Number of the partner's newest completed move. Absent or 0 if the partner never moved. */
  readonly newestMove?: number;
}

export interface FormerCell {
  readonly cell: number;
  /** Id of the partner's last ledger entry in the former cell. */
  readonly untilId: bigint;
}

export interface ApiKey {
  readonly keyId: number;
  readonly partnerId: number;
  /** Expiry of the key in milliseconds since the epoch. Null if it never expires. */
  readonly expiresAtMs: number | null;
  readonly isRevoked: boolean;
}

export interface Game {
  readonly gameId: number;
  readonly partnerId: number;
  readonly kind: KindOfGame;
  readonly status: GameStatus;
  /** Number of outcomes in the game's pool; 0 if the game is endless. */
  readonly poolSize: number;
  /** Sum of all prizes of a raffle as a fraction of the price of all tickets. */
  readonly poolRtp?: number | null;
  /** Time when a raffle's pool was sealed, in ms since the epoch. None of its outcomes was dealt before. */
  readonly sealedAtMs: number | undefined;
  readonly wagerMicros: number;
  readonly maxPayoutMicros: number;
  /**
   * Payout of each outcome code in micro-USD, as signed 64-bit little-endian integers, the format that
   * lua/deal.lua reads.
   */
  readonly payoutTable: Buffer;
  /** Payout of each outcome code in micro-USD, as numbers. */
  readonly payoutMicros: readonly number[];
  /** Members `outcome` and `presentation` of a response for each outcome code, as UTF-8 JSON. */
  readonly fragments: readonly Buffer[];
  /** Blackjack table of a game that is played in rounds. Undefined for a game that is played in spins. */
  readonly table?: BlackjackTable | undefined;
}

/** Cache of prize tiers by game and outcome code. */
const prizeTiers = new WeakMap<Pick<Game, 'fragments'>, (number | undefined)[]>();

/**
 * Returns the prize tier of an outcome. It is parsed from the rendered JSON once for each outcome code.
 * @throws Error if the game has no such outcome.
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
    throw new Error(`Game ${game.gameId} has no outcome with the code ${outcomeCode}`);
  const { outcome } = JSON.parse(`{${fragment.toString()}}`) as { outcome: { prizeTier: number } };
  tiers[outcomeCode] = outcome.prizeTier;
  return outcome.prizeTier;
}
