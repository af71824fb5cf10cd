/**
 * Cache of the seeds of shoes, which are read from Postgres by block, because many rounds of a table are
 * dealt from one block.
 */

import { SHOE_SEED_BYTES } from '../../domain/games/shoe.js';
import type { EngineStore } from '../engine.store.js';

/**
 * Maximum number of cached blocks. A block has 8 KB of seeds at an idle table and 256 KB at the busiest
 * table.
 */
const BLOCKS_KEPT = 256;

interface Block {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly toIndex: number;
  readonly seeds: Buffer;
}

export class Shoes {
  /** Cached blocks of shoes. The most recently used block is the last. */
  #blocks: Block[] = [];

  constructor(private readonly store: Pick<EngineStore, 'rounds'>) {}

  /**
   * Returns the seed of a shoe. It is secret until the shoe's round has ended.
   * @throws Error where no block has the shoe
   */
  async seedOf(gameId: number, shoeIndex: number): Promise<Buffer> {
    const { fromIndex, seeds } = await this.#blockOf(gameId, shoeIndex);
    const at = (shoeIndex - fromIndex) * SHOE_SEED_BYTES;
    return seeds.subarray(at, at + SHOE_SEED_BYTES);
  }

  async #blockOf(gameId: number, shoeIndex: number): Promise<Block> {
    const place = this.#blocks.findLastIndex(
      (block) => block.gameId === gameId && block.fromIndex <= shoeIndex && shoeIndex < block.toIndex,
    );
    const known = this.#blocks[place];
    if (known !== undefined) {
      if (place < this.#blocks.length - 1) {
        this.#blocks.splice(place, 1);
        this.#blocks.push(known);
      }
      return known;
    }
    const read = await this.store.rounds.shoeSeeds(gameId, shoeIndex);
    if (read === undefined) throw new Error(`No block of game ${gameId} has shoe ${shoeIndex}`);
    const block = { gameId, ...read };
    // A concurrent call may have cached the same block. A second copy does no harm.
    this.#blocks.push(block);
    if (this.#blocks.length > BLOCKS_KEPT) this.#blocks.shift();
    return block;
  }
}
