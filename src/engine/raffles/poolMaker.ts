/**
 * Makes the pool of a raffle, which is the only block of its game. The pool is sealed once and opened for
 * sale when it is loaded.
 */
import type { Piscina } from 'piscina';
import type { PrizeTableUsd } from '../../domain/games/prizeTable.js';
import type { Sql } from '../../postgres/connection.js';
import type { BlockMaker, MadeBlock, QueueState } from '../blocks/blockMaker.js';
import { openRaffle } from './raffles.store.js';

/** Task of a pool thread that seals a raffle (workers/sealRaffle.ts). */
export interface PoolOrder {
  readonly gameId: number;
  readonly table: PrizeTableUsd;
}

export class PoolMaker implements BlockMaker {
  readonly reserve = undefined;

  /**
   * @param sealer file of the worker that seals a pool
   * @param isOpen whether the pool was already opened, as far as the catalog knows
   */
  constructor(
    private readonly sql: Sql,
    private readonly pool: Piscina,
    private readonly sealer: string,
    private readonly order: PoolOrder,
    private isOpen: boolean,
  ) {}

  isLow({ leaseEnd }: QueueState): boolean {
    return leaseEnd === 0;
  }

  make(): Promise<MadeBlock> {
    return this.pool.run(this.order, { filename: this.sealer });
  }

  async loaded(): Promise<void> {
    if (this.isOpen) return;
    await openRaffle(this.sql, this.order.gameId);
    this.isOpen = true;
  }
}
