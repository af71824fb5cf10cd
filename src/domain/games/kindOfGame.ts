/**
 * Definition of a kind of game: the source of its outcomes, the acknowledgement of its spins, its life cycle,
 * its properties in lists of games, and its mathematics. Each kind has one definition (slot.ts, raffle.ts,
 * table.ts); index.ts lists them.
 */

import type { ParSheet } from '../par.js';
import type { OutcomeStatistics, RenderedSheet } from '../presentation.js';
import type { PrizeTableUsd } from './prizeTable.js';
import type { BlackjackTable, TableTerms } from './tableTerms.js';

export const GAME_TYPES = ['slot', 'raffle', 'blackjack'] as const;
export type GameType = (typeof GAME_TYPES)[number];

/**
 * Only raffles, whose pool is finite, can be `SEALING` (the pool is not ready) or `CLOSED` (all tickets are
 * dealt, or the raffle is voided).
 */
export type GameStatus = 'ACTIVE' | 'SUSPENDED' | 'SEALING' | 'CLOSED';

export interface KindOfGame {
  readonly gameType: GameType;
  readonly registeredBy: 'partner' | 'operator';
  readonly outcomeSource: OutcomeSource;
  /**
   * When a spin is acknowledged. `as-configured`: the environment variable ACK decides.
   * `after-ledger-commit`: a spin is answered after its commit in Postgres, whatever ACK says.
   */
  readonly acknowledgement: 'as-configured' | 'after-ledger-commit';
  readonly lifeCycle: LifeCycle;
  readonly mathematics: KindMathematics;
  readonly listing: Listing;
}

export interface OutcomeSource {
  /**
   * Form in which outcomes are made.
   * - `blocks`: endless; blocks are made ahead of demand, with a reserve of ready ones.
   * - `pool`: finite; a single block, sealed before its first outcome is dealt.
   * - `shoes`: endless blocks of shoes; each shoe has its own commitment, and its outcome code is the
   *   result of its deal.
   */
  readonly form: 'blocks' | 'pool' | 'shoes';
  /**
   * Fault message that explains why an operator can't order blocks of such a game. Undefined if an operator
   * can.
   */
  readonly refusesBlocks: string | undefined;
  /**
   * Returns the index at which dealing continues after a rebuild.
   * @param leasedTo index after the last outcome that was ever leased
   * @param bookedTo index after the last committed outcome
   */
  readonly resumesAt: (leasedTo: number, bookedTo: number) => number;
}

/** Life cycle of a game, and the binding of its request ids. */
export interface LifeCycle {
  readonly statusOf: (facts: LifeFacts) => GameStatus;
  /**
   * Returns whether the ledger may have a spin with a requestId that neither Redis nor a filter contains. If
   * so, the ledger must be searched before anything is dealt.
   */
  readonly mayBindInLedger: (moment: BindingMoment) => boolean;
}

export interface LifeFacts {
  readonly isSuspended: boolean;
  /**
   * Time when the pool was sealed and could be dealt from. Null if it is not sealed, or the kind has no pool.
   */
  readonly sealedAt: Date | null;
  /** Time when the last outcome of the pool was committed, or the operator ended the game permanently. */
  readonly closedAt: Date | null;
}

export interface BindingMoment {
  /**
   * Time when the pool was sealed, in milliseconds since the epoch. None of its outcomes was dealt before.
   */
  readonly sealedAtMs: number;
  /**
   * Time from which all bound request ids are in Redis or in the ledger's runs, in milliseconds since the
   * epoch.
   */
  readonly boundFromMs: number;
}

/**
 * Source of a game's outcomes, as the row of the game has it: a PAR sheet, a prize table or a blackjack
 * table.
 */
export interface GameSource {
  readonly parSheetId: number | null;
  readonly prizeTable: PrizeTableUsd | null;
  readonly table: TableTerms | null;
}

export interface KindMathematics {
  /**
   * Returns the id of the PAR sheet, which several games may share. Undefined if the game's own record has
   * all data.
   */
  readonly sheetIdOf: (source: GameSource) => number | undefined;
  /**
   * @param sheet the sheet that {@link sheetIdOf} names
   * @returns undefined if the record lacks data that the kind needs, so that the game can't be dealt
   */
  readonly render: (source: GameSource, sheet: ParSheet | undefined) => RenderedOutcomes | undefined;
  /** Returns the certified return to player as a fraction. Null if there is none. */
  readonly certifiedRtp: (certified: {
    readonly sheetRtp: number | null;
    readonly prizeTable: PrizeTableUsd | null;
  }) => number | null;
}

export interface RenderedOutcomes {
  /**
   * Wager and largest payout of the game, and for each outcome code the payout and the JSON that a response
   * shows.
   */
  readonly rendered: RenderedSheet;
  /** Statistics to which the observed return is compared. Undefined if the outcomes are not random. */
  readonly statistics: OutcomeStatistics | undefined;
  /** Total number of outcomes; 0 if the game is endless. */
  readonly poolSize: number;
  /** Sum of all prizes as a fraction of the price of all tickets. */
  readonly poolRtp?: number | null;
  readonly table?: BlackjackTable;
}

export interface Listing {
  readonly forPartner: (pool: PoolFacts | undefined) => Partial<PoolShown>;
  readonly forOperator: (pool: PoolFacts | undefined) => { readonly ticketsRemaining?: number };
}

export interface PoolFacts {
  /** Total number of tickets in the raffle's pool. */
  readonly poolSize: number;
  /** Commitment in hexadecimal. Null until the pool is sealed. */
  readonly commitment: string | null;
  /** Number of tickets that have not been sold; a ticket counts as sold when it is committed. */
  readonly ticketsRemaining: number;
}

interface PoolShown {
  readonly poolSize: number;
  readonly poolCommitment: string | null;
}
