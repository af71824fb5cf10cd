/**
 * What a kind of game is: how its outcomes are supplied, when a spin of it is acknowledged, how a game lives and ends, what a player
 * and an operator see of it, what its return should be. One definition each (slot.ts, raffle.ts, table.ts); index.ts has the list.
 */

import type { ParSheet } from '../par.js';
import type { OutcomeStatistics, RenderedSheet } from '../presentation.js';
import type { PrizeTableUsd } from './prizeTable.js';
import type { BlackjackTable, TableTerms } from './tableTerms.js';

export const GAME_TYPES = ['slot', 'raffle', 'blackjack'] as const;
export type GameType = (typeof GAME_TYPES)[number];

/** `SEALING` (its supply is not there yet) and `CLOSED` (all of it is dealt, or it is voided, for ever) are of kinds with a finite supply only. */
export type GameStatus = 'ACTIVE' | 'SUSPENDED' | 'SEALING' | 'CLOSED';

export interface KindOfGame {
  readonly gameType: GameType;
  /** Who registers a game of this kind. */
  readonly registeredBy: 'partner' | 'operator';
  readonly outcomeSource: OutcomeSource;
  /**
   * `as-configured`: the setting ACK decides. `after-ledger-commit`: a spin is answered once Postgres has it, whatever ACK says.
   */
  readonly acknowledgement: 'as-configured' | 'after-ledger-commit';
  readonly lifeCycle: LifeCycle;
  readonly mathematics: KindMathematics;
  readonly listing: Listing;
}

/** Where the outcomes of a game come from. */
export interface OutcomeSource {
  /**
   * `blocks`: endless; blocks are made ahead of demand, and a reserve of them is kept ready.
   * `pool`: finite; one block, sealed before the first outcome is dealt, and nothing after its last one.
   * `shoes`: endless blocks of shoes; each is committed to by itself, and its outcome is what its deal comes to.
   */
  readonly form: 'blocks' | 'pool' | 'shoes';
  /** Why an operator can't ask for blocks to be made, as a fault's message; undefined: it can. */
  readonly refusesBlocks: string | undefined;
  /**
   * Index at which dealing goes on after a rebuild.
   * @param leasedTo index after the last outcome that was ever leased
   * @param bookedTo index after the last outcome that is in the ledger
   */
  readonly resumesAt: (leasedTo: number, bookedTo: number) => number;
}

/** How a game begins and ends, and for how long its request ids bind. */
export interface LifeCycle {
  readonly statusOf: (facts: LifeFacts) => GameStatus;
  /**
   * Whether a requestId that neither Redis nor a filter knows may stand for a spin in the ledger, where it has to be looked up
   * before anything is dealt.
   */
  readonly mayBindInLedger: (moment: BindingMoment) => boolean;
}

/** What the database notes of a game's life. */
export interface LifeFacts {
  readonly isSuspended: boolean;
  /** When its supply was sealed and could be dealt from; null: not yet, or of a kind that is not sealed as a whole. */
  readonly sealedAt: Date | null;
  /** When the last outcome of its supply was booked, or the operator ended it for good. */
  readonly closedAt: Date | null;
}

export interface BindingMoment {
  /** When its supply was sealed, milliseconds since the epoch; no outcome of it was dealt before. */
  readonly sealedAtMs: number;
  /** All request ids that were bound from here on are in Redis or in the ledger's runs, milliseconds since the epoch. */
  readonly boundFromMs: number;
}

/** What a game's outcomes are made of, as its record names it. */
export interface GameSource {
  readonly parSheetId: number | null;
  readonly prizeTable: PrizeTableUsd | null;
  readonly table: TableTerms | null;
}

/** What an outcome pays and shows, and what is expected of many. */
export interface KindMathematics {
  /** The PAR sheet that is needed, which many games share; undefined: the game's own record has all. */
  readonly sheetIdOf: (source: GameSource) => number | undefined;
  /**
   * @param sheet the one that {@link sheetIdOf} names
   * @returns undefined where the record lacks what the kind needs: the game can't be dealt then
   */
  readonly render: (source: GameSource, sheet: ParSheet | undefined) => RenderedOutcomes | undefined;
  /** The return to player that was certified, as a fraction; null where none is known. */
  readonly certifiedRtp: (certified: {
    /** Of the PAR sheet. */
    readonly sheetRtp: number | null;
    readonly prizeTable: PrizeTableUsd | null;
  }) => number | null;
}

export interface RenderedOutcomes {
  /** Wager, largest payout, and by outcome code what it pays and the JSON that a response has of it. */
  readonly rendered: RenderedSheet;
  /** What the return of many spins is judged by; undefined: it is not left to chance. */
  readonly statistics: OutcomeStatistics | undefined;
  /** Outcomes in all; 0: the supply is endless. */
  readonly poolSize: number;
  /** What all prizes come to, as a fraction of the price of all tickets. */
  readonly poolRtp?: number | null;
  /** Of a game that is played in rounds. */
  readonly table?: BlackjackTable;
}

/** What lists of games show of this kind beside what they show of every game. */
export interface Listing {
  readonly forPartner: (pool: PoolFacts | undefined) => Partial<PoolShown>;
  readonly forOperator: (pool: PoolFacts | undefined) => { readonly ticketsRemaining?: number };
}

/** What the database has of a game's finite supply. */
export interface PoolFacts {
  /** Outcomes in all. */
  readonly poolSize: number;
  /** Hexadecimal; null until the pool is sealed. */
  readonly commitment: string | null;
  /** Outcomes that are not booked as dealt. */
  readonly ticketsRemaining: number;
}

interface PoolShown {
  readonly poolSize: number;
  readonly poolCommitment: string | null;
}
