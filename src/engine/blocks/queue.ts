/** What the block keeper knows of a game's queue of outcomes. */
import type { CellLease } from '../cells/cells.store.js';
import { type BlockMaker, paceOfBlock } from './blockMaker.js';

export interface Queue {
  readonly gameId: number;
  readonly partnerId: number;
  readonly lease: CellLease;
  readonly blockMaker: BlockMaker;
  /** Blocks that are loaded and not wholly booked, oldest first. */
  blocks: { fromIndex: number; toIndex: number }[];
  /** Index after the last outcome that is booked. */
  nextIndex: number;
  /** Index after the last outcome that is known to be dealt; the ledger may not have it yet. */
  dealtIndex: number;
  /** When a script announced last that a block was dealt out, as performance.now() counts, and of which index. */
  dealtOut: { at: number; index: number };
  /** End of the newest lease; undefined: to be read again from the stores. */
  leaseEnd: number | undefined;
  requested: number;
  /** When the game was seen suspended, as performance.now() counts; undefined: it is not. */
  suspendedAt: number | undefined;
  /** Its blocks are not in Redis. */
  isFreed: boolean;
  making: boolean;
  notBefore: number;
  /** How often in a row it could not be filled. */
  failures: number;
  pace: number;
  seenAt: number;
}

/** Of which nothing is known yet. */
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
  making: false,
  notBefore: 0,
  failures: 0,
  pace: 0,
  seenAt: performance.now(),
});

/** Learns that a game has dealt a block out, and is at an index now. */
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

/** How long the outcomes of a queue last at its pace; one that was not read yet may have none. */
export const queueSecondsLeft = ({ leaseEnd, dealtIndex, pace }: Queue): number =>
  leaseEnd === undefined ? 0 : (leaseEnd - dealtIndex) / Math.max(pace, 1);
