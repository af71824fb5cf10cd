/** What the block keeper knows of a game's queue of outcomes. */
import type { CellLease } from '../postgres/cells.js';
import type { OutcomeSupply } from './supply.js';

export interface Queue {
  readonly gameId: number;
  readonly partnerId: number;
  readonly lease: CellLease;
  readonly supply: OutcomeSupply;
  /** Blocks that are loaded and not wholly booked, oldest first. */
  blocks: { fromIndex: number; toIndex: number }[];
  nextIndex: number;
  /** End of the newest lease; undefined: to be read again from the stores. */
  leaseEnd: number | undefined;
  requested: number;
  /** When the game was seen suspended, as performance.now() counts; undefined: it is not. */
  suspendedAt: number | undefined;
  /** Its blocks are not in Redis. */
  isFreed: boolean;
  making: boolean;
  notBefore: number;
  pace: number;
  seenAt: number;
}

/** How long the outcomes of a queue last at its pace; one that was not read yet may have none. */
export const secondsLeft = ({ leaseEnd, nextIndex, pace }: Queue): number =>
  leaseEnd === undefined ? 0 : (leaseEnd - nextIndex) / Math.max(pace, 1);
