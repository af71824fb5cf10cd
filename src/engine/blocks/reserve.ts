/** The reserve of a game: when its ready blocks fall below the minimum, and when they are back, Postgres notes it once. */

import type { Sql } from '../../postgres/connection.js';
import type { CellLease } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import { reserveFell, reserveIsBack } from './reserve.store.js';

export interface ReserveGame {
  readonly gameId: number;
  readonly partnerId: number;
  readonly lease: CellLease;
}

export class Reserve {
  readonly #sql: Sql;
  readonly #game: ReserveGame;
  readonly #minReadyBlocks: (partnerId: number) => number;
  readonly #events: EventEmitter;
  /** Outcomes that are kept ready, in seconds of the present pace. */
  readonly reserveSeconds: number;
  /** What is noted; undefined: not known. */
  #noted: 'full' | 'low' | undefined;
  /** To how many blocks the reserve has fallen, below the minimum, where that is not noted yet. */
  #fellTo: number | undefined;

  constructor(
    sql: Sql,
    game: ReserveGame,
    minReadyBlocks: (partnerId: number) => number,
    events: EventEmitter,
    reserveSeconds: number,
  ) {
    this.#sql = sql;
    this.#game = game;
    this.#minReadyBlocks = minReadyBlocks;
    this.#events = events;
    this.reserveSeconds = reserveSeconds;
  }

  /** Blocks that the partner is to have ready. */
  get minReadyBlocks(): number {
    return this.#minReadyBlocks(this.#game.partnerId);
  }

  /** Takes note of blocks that are gone. */
  hasFallen(readyBlocks: number): void {
    if (readyBlocks < this.minReadyBlocks) this.#fellTo = Math.min(readyBlocks, this.#fellTo ?? readyBlocks);
  }

  /** Notes in Postgres, where it turned, that the reserve fell or is back: partners are notified of each fall once. */
  async note(readyBlocks: () => number): Promise<void> {
    const { gameId, partnerId, lease } = this.#game;
    const { minReadyBlocks } = this;
    const fellTo = this.#fellTo;
    if (fellTo !== undefined) {
      if (this.#noted !== 'low') {
        const fall = { gameId, partnerId, readyBlocks: fellTo, minReadyBlocks };
        const deliveries = await reserveFell(this.#sql, lease, fall);
        if (deliveries > 0) this.#events.emit('EventsRecorded', { deliveries });
      }
      this.#noted = 'low';
      this.#fellTo = undefined;
    }
    if (this.#noted !== 'full' && readyBlocks() >= minReadyBlocks) {
      await reserveIsBack(this.#sql, lease, gameId);
      this.#noted = 'full';
    }
  }
}
