/**
 * Makes blocks of shoes before they are needed, as slotBlockMaker.ts does for slots. A shoe lasts for one
 * round.
 */
import type { Piscina } from 'piscina';
import type { BlackjackRules } from '../../domain/games/blackjackRules.js';
import {
  type BlockMaker,
  blockSizeFor,
  type MadeBlock,
  type QueueState,
  runsLow,
} from '../blocks/blockMaker.js';
import type { Reserve } from '../blocks/reserve.js';

/** Task of a pool thread that makes shoes (workers/makeShoes.ts). */
export interface ShoeOrder {
  readonly gameId: number;
  readonly rules: BlackjackRules;
  readonly fromIndex: number;
  readonly count: number;
}

/** Number of shoes in a block of an idle table. The seeds of these shoes take 8 KB. */
const SHOES_MIN = 256;
/** A thread takes about 0.2 s to make a block of this size. */
const SHOES_MAX = 8192;

export class ShoeBlockMaker implements BlockMaker {
  /** @param shoemaker file of the worker that makes shoes */
  constructor(
    private readonly pool: Piscina,
    private readonly shoemaker: string,
    private readonly game: { readonly gameId: number; readonly rules: BlackjackRules },
    readonly reserve: Reserve,
  ) {}

  isLow(queue: QueueState): boolean {
    return runsLow(queue, this.reserve);
  }

  make(fromIndex: number, pace: number): Promise<MadeBlock> {
    const count = blockSizeFor(pace, SHOES_MIN, SHOES_MAX);
    const order: ShoeOrder = { ...this.game, fromIndex, count };
    return this.pool.run(order, { filename: this.shoemaker });
  }

  async loaded(): Promise<void> {}
}
