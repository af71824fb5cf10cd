/** How a queue gets its outcomes: what the block keeper asks of the block maker of a game (domain/games/kindOfGame.ts). */
import type { Reserve } from './reserve.js';

/** A block that is drawn, checked and sealed on a thread of the pool (workers/). */
export interface MadeBlock {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  /** Packed, 2 bytes an outcome. */
  readonly outcomes: Uint8Array;
  readonly commitment: Uint8Array;
  /** What is kept of the tree over its leaves (blockTree.ts). */
  readonly tree: Uint8Array;
  /** Of what decides the outcomes: sheet, prize table or rules. */
  readonly mathHash: Uint8Array;
  readonly elapsedMs: number;
}

/** What a block maker judges a queue by. */
export interface QueueState {
  /** Blocks that are loaded and not wholly booked, oldest first. */
  readonly blocks: readonly { readonly fromIndex: number; readonly toIndex: number }[];
  /** Index after the last one that is known to be dealt. */
  readonly dealtIndex: number;
  /** Index after the newest lease; undefined: not known. */
  readonly leaseEnd: number | undefined;
  /** Blocks that the operator asked for and that are not made yet. */
  readonly requested: number;
  /** Outcomes per second that were lately dealt. */
  readonly pace: number;
}

export interface BlockMaker {
  /** The blocks that the partner is to have ready; undefined: the game has no reserve. */
  readonly reserve: Reserve | undefined;
  /** Whether another block has to be made now. */
  isLow(queue: QueueState): boolean;
  /** Makes the next block, which begins at an index. @param pace as in {@link QueueState} */
  make(fromIndex: number, pace: number): Promise<MadeBlock>;
  /** What is leased is loaded now: the game can be dealt from. */
  loaded(): Promise<void>;
}

/** A block of an endless game lasts about this long at the present pace. */
const BLOCK_SECONDS = 2;

/** The pace that is planned for halves in this time once a game slows down. */
const PACE_HALF_LIFE_SECONDS = 10;
/** What is booked at once was dealt within about this time, however long the game rested before. */
const FLUSHED_WITHIN_SECONDS = { least: 0.05, most: 0.25 };

/**
 * The pace that is planned for, outcomes per second, after some were booked.
 * @param pace what was planned for before
 * @param secondsSince since the booking before
 */
export function paceAfter(pace: number, booked: number, secondsSince: number): number {
  const { least, most } = FLUSHED_WITHIN_SECONDS;
  const now = booked / Math.min(most, Math.max(least, secondsSince));
  return Math.max(now, pace * 0.5 ** (secondsSince / PACE_HALF_LIFE_SECONDS));
}

/**
 * The pace that is planned for, outcomes per second, after a block was dealt out.
 * @param pace what was planned for before
 * @param dealt outcomes since the last time that a block was dealt out
 * @param secondsSince since then
 * @param ranDryOf the size of the newest block, where nothing is left: more may have been wanted, so that the next block has
 *   twice as many
 */
export function paceOfBlock(pace: number, dealt: number, secondsSince: number, ranDryOf = 0): number {
  const now = dealt / Math.max(FLUSHED_WITHIN_SECONDS.least, secondsSince);
  return Math.max(pace, now, (2 * ranDryOf) / BLOCK_SECONDS);
}

/** Outcomes in the next block of an endless game, a power of two between bounds. @param pace as in {@link QueueState} */
export const blockSizeFor = (pace: number, least: number, most: number): number =>
  Math.min(most, Math.max(least, 2 ** Math.ceil(Math.log2(Math.max(1, pace * BLOCK_SECONDS)))));

/** Whether an endless game needs another block: the operator asked for one, the reserve is short, or the pace needs it. */
export const runsLow = (queue: QueueState, { minReadyBlocks, reserveSeconds }: Reserve): boolean => {
  const { leaseEnd = 0, dealtIndex, requested, pace } = queue;
  const isShort = leaseEnd - dealtIndex < reserveSeconds * pace;
  return requested > 0 || isShort || readyBlocks(queue) <= minReadyBlocks;
};

/** Blocks that have outcomes which are not dealt, as far as is known. */
export const readyBlocks = ({ blocks, dealtIndex }: Pick<QueueState, 'blocks' | 'dealtIndex'>): number =>
  blocks.filter(({ toIndex }) => toIndex > dealtIndex).length;
