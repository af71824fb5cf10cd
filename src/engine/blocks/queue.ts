/** State of a game's outcome queue as the block keeper knows it. */
import type { CellLease } from '../cells/cells.store.js';
import { type BlockMaker, paceOfBlock } from './blockMaker.js';

export interface Queue {
  readonly gameId: number;
  readonly partnerId: number;
  readonly lease: CellLease;
  readonly blockMaker: BlockMaker;
  /** Blocks that are loaded and not fully committed, oldest first. */
  blocks: { fromIndex: number; toIndex: number }[];
  /** Index after the last committed outcome. */
  nextIndex: number;
  /** Index after the last outcome known to be dealt. That outcome may not be in the ledger yet. */
  dealtIndex: number;
  /**
   * Newest announcement that a block was dealt out: its time on the scale of performance.now(), and the index
   * that it announced.
   */
  dealtOut: { at: number; index: number };
  /**
   * Index after the last leased outcome. Undefined means that the queue must be read again from the stores.
   */
  leaseEnd: number | undefined;
  requested: number;
  /**
   * Time when the keeper first saw the game suspended, on the scale of performance.now(). Undefined if the
   * game is not suspended.
   */
  suspendedAt: number | undefined;
  /** Whether the game's blocks have been removed from Redis. */
  isFreed: boolean;
  /** Whether a job of the queue runs or waits for its turn. */
  hasJob: boolean;
  notBefore: number;
  failures: number;
  pace: number;
  seenAt: number;
}

export const newQueue = (
  { gameId, partnerId }: { readonly gameId: number; readonly partnerId: number },
  lease: CellLease,
  blockMaker: BlockMaker,
): Queue => ({
  gameId,
  partnerId,
  lease,
  blockMaker,
  blocks: [],
  nextIndex: 0,
  dealtIndex: 0,
  dealtOut: { at: performance.now(), index: 0 },
  leaseEnd: undefined,
  requested: 0,
  suspendedAt: undefined,
  isFreed: false,
  hasJob: false,
  notBefore: 0,
  failures: 0,
  pace: 0,
  seenAt: performance.now(),
});

/**
 * Updates a queue after the announcement that a block of its game was dealt out. The announcement has the
 * game's index at that time.
 */
export function learnDealtOut(queue: Queue, index: number, now: number): void {
  const { dealtOut, blocks, leaseEnd, pace } = queue;
  if (index <= dealtOut.index) return;
  const newest = blocks.at(-1);
  const ranDryOf = newest !== undefined && leaseEnd !== undefined && index >= leaseEnd ? newest : undefined;
  queue.pace = paceOfBlock(
    pace,
    index - dealtOut.index,
    (now - dealtOut.at) / 1000,
    ranDryOf && ranDryOf.toIndex - ranDryOf.fromIndex,
  );
  queue.dealtOut = { at: now, index };
  queue.dealtIndex = Math.max(queue.dealtIndex, index);
}

/**
 * Returns how long the outcomes of a queue last at its pace, in seconds. A queue that has not been read
 * counts as empty.
 */
export const queueSecondsLeft = ({ leaseEnd, dealtIndex, pace }: Queue): number =>
  leaseEnd === undefined ? 0 : (leaseEnd - dealtIndex) / Math.max(pace, 1);
