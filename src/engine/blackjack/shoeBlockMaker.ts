/** Makes blocks of shoes ahead of demand, as those of slots (slotBlockMaker.ts); a shoe lasts for a round. */
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

/** What a thread of the pool is asked for (workers/makeShoes.ts). */
export interface ShoeOrder {
  readonly gameId: number;
  readonly rules: BlackjackRules;
  readonly fromIndex: number;
  readonly count: number;
}

/** Shoes in a block of an idle table: 8 KB of seeds. */
const SHOES_MIN = 256;
/** About 0.2 s of a thread. */
const SHOES_MAX = 8192;

export class ShoeBlockMaker implements BlockMaker {
  readonly reserve: Reserve;
  readonly #pool: Piscina;
  readonly #shoemaker: string;
  readonly #game: { readonly gameId: number; readonly rules: BlackjackRules };

  /** @param shoemaker file of the worker that makes shoes */
  constructor(
    pool: Piscina,
    shoemaker: string,
    game: { readonly gameId: number; readonly rules: BlackjackRules },
    reserve: Reserve,
  ) {
    this.#pool = pool;
    this.#shoemaker = shoemaker;
    this.#game = game;
    this.reserve = reserve;
  }

  isLow(queue: QueueState): boolean {
    return runsLow(queue, this.reserve);
  }

  make(fromIndex: number, pace: number): Promise<MadeBlock> {
    const count = blockSizeFor(pace, SHOES_MIN, SHOES_MAX);
    const order: ShoeOrder = { ...this.#game, fromIndex, count };
    return this.#pool.run(order, { filename: this.#shoemaker });
  }

  async loaded(): Promise<void> {}
}
