/** Endless supply of shoes: blocks made ahead of demand, as those of slots (blockSupply.ts); a shoe lasts for a round. */
import type { Piscina } from 'piscina';
import type { BlackjackRules } from '../domain/games/blackjackRules.js';
import type { Reserve } from './reserve.js';
import type { MadeBlock, OutcomeSupply, QueueState } from './supply.js';

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
/** A block lasts about this long at the present pace; twice that is kept ready. */
const BLOCK_SECONDS = 2;

const shoesOf = (pace: number): number =>
  Math.min(SHOES_MAX, Math.max(SHOES_MIN, 2 ** Math.ceil(Math.log2(Math.max(1, pace * BLOCK_SECONDS)))));

export class ShoeSupply implements OutcomeSupply {
  readonly reserve: Reserve;
  readonly #pool: Piscina;
  readonly #shoemaker: string;
  readonly #game: { readonly gameId: number; readonly rules: BlackjackRules };

  /** @param shoemaker the worker that makes shoes */
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

  isLow({ leaseEnd = 0, nextIndex, requested, blocks, pace }: QueueState): boolean {
    return (
      requested > 0 ||
      blocks.length <= this.reserve.minReadyBlocks ||
      leaseEnd - nextIndex < 2 * BLOCK_SECONDS * pace
    );
  }

  make(fromIndex: number, pace: number): Promise<MadeBlock> {
    const order: ShoeOrder = { ...this.#game, fromIndex, count: shoesOf(pace) };
    return this.#pool.run(order, { filename: this.#shoemaker });
  }

  async loaded(): Promise<void> {}
}
