/**
 * Watches the reserve of a game. Each fall below the minimum, and each return to it, is recorded in Postgres
 * once.
 */

import type { Sql } from '../../postgres/connection.js';
import type { CellLease } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import { reserveFell, reserveIsBack } from './reserve.store.js';

export class Reserve {
  readonly #minReadyBlocks: (partnerId: number) => number;
  /** Newest state that this process has recorded in Postgres. Undefined if it has not recorded any. */
  #noted: 'full' | 'low' | undefined;
  /**
   * Lowest number of ready blocks since the reserve fell below the minimum, as long as the fall is not
   * recorded. Undefined if there was no such fall.
   */
  #fellTo: number | undefined;

  constructor(
    private readonly sql: Sql,
    private readonly game: {
      readonly gameId: number;
      readonly partnerId: number;
      readonly lease: CellLease;
    },
    minReadyBlocks: (partnerId: number) => number,
    private readonly events: EventEmitter,
    /** Length of the reserve of outcomes, in seconds at the game's present pace. */
    readonly reserveSeconds: number,
  ) {
    this.#minReadyBlocks = minReadyBlocks;
  }

  /** Minimum number of ready blocks that the partner wants. */
  get minReadyBlocks(): number {
    return this.#minReadyBlocks(this.game.partnerId);
  }

  /** Notes the number of ready blocks after blocks were dealt out. */
  hasFallen(readyBlocks: number): void {
    if (readyBlocks < this.minReadyBlocks) this.#fellTo = Math.min(readyBlocks, this.#fellTo ?? readyBlocks);
  }

  /**
   * Records in Postgres that the reserve fell or recovered, if its state has changed. Partners get one event
   * for each fall.
   */
  async note(readyBlocks: () => number): Promise<void> {
    const { gameId, partnerId, lease } = this.game;
    const { minReadyBlocks } = this;
    const fellTo = this.#fellTo;
    if (fellTo !== undefined) {
      if (this.#noted !== 'low') {
        const fall = { gameId, partnerId, readyBlocks: fellTo, minReadyBlocks };
        const deliveries = await reserveFell(this.sql, lease, fall);
        if (deliveries > 0) this.events.emit('EventsRecorded', { deliveries });
      }
      this.#noted = 'low';
      this.#fellTo = undefined;
    }
    if (this.#noted !== 'full' && readyBlocks() >= minReadyBlocks) {
      await reserveIsBack(this.sql, lease, gameId);
      this.#noted = 'full';
    }
  }
}
