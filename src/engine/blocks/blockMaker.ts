/**
 * Interface between the block keeper and the block makers, one for each kind of game
 * (domain/games/kindOfGame.ts). It also has the rules for block sizes and reserves of endless games.
 */
import type { Reserve } from './reserve.js';

/** A block that a thread of the pool has drawn, checked and sealed (workers/). */
export interface MadeBlock {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  /** Packed outcome codes of the block, 2 bytes each. */
  readonly outcomes: Uint8Array;
  readonly commitment: Uint8Array;
  /** Nodes of the Merkle tree over the block's leaves that are stored with the block (blockTree.ts). */
  readonly tree: Uint8Array;
  /**
   * Hash of the mathematics that decide the outcomes: those of the PAR sheet, the prize table or the table
   * rules.
   */
  readonly mathHash: Uint8Array;
  readonly elapsedMs: number;
}

/** State of a game's queue. A block maker decides from it whether to make another block. */
export interface QueueState {
  /** Blocks that are loaded and not fully committed, oldest first. */
  readonly blocks: readonly { readonly fromIndex: number; readonly toIndex: number }[];
  /** Index after the newest outcome that was dealt, as far as the block keeper knows. */
  readonly dealtIndex: number;
  /** Index after the last leased outcome. Undefined until the keeper has read it from Postgres. */
  readonly leaseEnd: number | undefined;
  /** Number of blocks that the operator has requested and that have not been made yet. */
  readonly requested: number;
  /** Dealing rate of the game in the recent past, in outcomes per second. */
  readonly pace: number;
}

export interface BlockMaker {
  /**
   * Minimum number of ready blocks that the partner wants for the game. Undefined if the game has no reserve.
   */
  readonly reserve: Reserve | undefined;
  /** Returns whether another block of the game must be made now. */
  isLow(queue: QueueState): boolean;
  /**
   * Makes the next block, which begins at `fromIndex`.
   * @param pace dealing rate as in {@link QueueState}
   */
  make(fromIndex: number, pace: number): Promise<MadeBlock>;
  /** Called once all leased blocks are loaded, so that the game can be dealt from. */
  loaded(): Promise<void>;
}

/**
 * Time for which a block of a slot game or blackjack table should last at the game's present pace, in
 * seconds.
 */
const BLOCK_SECONDS = 2;

/** Half-life of the planned pace after a game slows down, in seconds. */
const PACE_HALF_LIFE_SECONDS = 10;
/**
 * Bounds of the time, in seconds, in which the outcomes of one flush are assumed to have been dealt. The time
 * since the flush before it may be much longer, if the game was idle.
 */
const FLUSHED_WITHIN_SECONDS = { least: 0.05, most: 0.25 };

/**
 * Returns the planned pace, in outcomes per second, after a flush has committed outcomes.
 * @param pace planned pace before the flush
 * @param secondsSince time since the flush before this one, in seconds
 */
export function paceAfter(pace: number, booked: number, secondsSince: number): number {
  const { least, most } = FLUSHED_WITHIN_SECONDS;
  const now = booked / Math.min(most, Math.max(least, secondsSince));
  return Math.max(now, pace * 0.5 ** (secondsSince / PACE_HALF_LIFE_SECONDS));
}

/**
 * Returns the planned pace, in outcomes per second, after the last outcome of a block was dealt.
 * @param pace planned pace before that
 * @param dealt number of outcomes dealt since the block before this one was exhausted
 * @param secondsSince time since the block before this one was exhausted, in seconds
 * @param ranDryOf size of the newest block if the queue is now empty. In that case the demand may have been
 * higher than measured, so the next block is twice as large.
 */
export function paceOfBlock(pace: number, dealt: number, secondsSince: number, ranDryOf = 0): number {
  const now = dealt / Math.max(FLUSHED_WITHIN_SECONDS.least, secondsSince);
  return Math.max(pace, now, (2 * ranDryOf) / BLOCK_SECONDS);
}

/**
 * Returns the size of the next block of a slot game or blackjack table: a power of two between the bounds.
 * @param pace dealing rate as in {@link QueueState}
 */
export const blockSizeFor = (pace: number, least: number, most: number): number =>
  Math.min(most, Math.max(least, 2 ** Math.ceil(Math.log2(Math.max(1, pace * BLOCK_SECONDS)))));

/**
 * Returns whether a slot game or blackjack table needs another block: the operator requested one, too few
 * blocks are ready, or the ready outcomes would not last long enough at the game's pace.
 */
export const runsLow = (queue: QueueState, { minReadyBlocks, reserveSeconds }: Reserve): boolean => {
  const { leaseEnd = 0, dealtIndex, requested, pace } = queue;
  const isShort = leaseEnd - dealtIndex < reserveSeconds * pace;
  return requested > 0 || isShort || readyBlocks(queue) <= minReadyBlocks;
};

/** Counts the blocks that still have undealt outcomes, as far as the block keeper knows. */
export const readyBlocks = ({ blocks, dealtIndex }: Pick<QueueState, 'blocks' | 'dealtIndex'>): number =>
  blocks.filter(({ toIndex }) => toIndex > dealtIndex).length;
