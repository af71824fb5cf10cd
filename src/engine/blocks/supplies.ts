/** Gives each game the supply of its kind. */
import type { Piscina } from 'piscina';
import { kindOfGame } from '../../domain/games/index.js';
import type { GameSource, GameStatus, GameType, Supply } from '../../domain/games/kindOfGame.js';
import type { Sql } from '../../postgres/connection.js';
import { ShoeSupply } from '../blackjack/shoeSupply.js';
import type { CellLease } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import { PoolSupply } from '../raffles/poolSupply.js';
import { BlockSupply, SheetCache } from './blockSupply.js';
import { Reserve } from './reserve.js';
import type { OutcomeSupply } from './supply.js';

export interface KeptGame extends GameSource {
  readonly gameId: number;
  readonly partnerId: number;
  readonly cell: number;
  readonly gameType: GameType;
  /** When a finite supply was opened to spins; null: it was not, or the supply is endless. */
  readonly sealedAt: Date | null;
  readonly status: GameStatus;
  readonly blocksRequested: number;
}

export interface SupplyOptions {
  readonly minReadyBlocks: (partnerId: number) => number;
  /** The worker of the thread pool that seals a raffle. */
  readonly sealer: string;
  /** The worker of the thread pool that makes shoes. */
  readonly shoemaker: string;
  /** Outcomes that are kept ready, in seconds of a game's present pace. */
  readonly reserveSeconds: number;
  readonly events: EventEmitter;
}

export class Supplies {
  readonly #sql: Sql;
  readonly #pool: Piscina;
  readonly #sheets: SheetCache;
  readonly #options: SupplyOptions;

  constructor(sql: Sql, pool: Piscina, options: SupplyOptions) {
    this.#sql = sql;
    this.#pool = pool;
    this.#sheets = new SheetCache(sql);
    this.#options = options;
  }

  of(game: KeptGame, lease: CellLease): OutcomeSupply {
    const { gameId, partnerId } = game;
    const { minReadyBlocks, events, reserveSeconds, sealer, shoemaker } = this.#options;
    const reserve = (): Reserve =>
      new Reserve(this.#sql, { gameId, partnerId, lease }, minReadyBlocks, events, reserveSeconds);
    const makers: { readonly [F in Supply['form']]: () => OutcomeSupply } = {
      blocks: () => {
        const order = { gameId, sheetId: game.parSheetId! };
        return new BlockSupply(this.#pool, this.#sheets, order, reserve());
      },
      pool: () => {
        const order = { gameId, table: game.prizeTable! };
        return new PoolSupply(this.#sql, this.#pool, sealer, order, game.sealedAt !== null);
      },
      shoes: () => {
        const order = { gameId, rules: game.table!.rules };
        return new ShoeSupply(this.#pool, shoemaker, order, reserve());
      },
    };
    return makers[kindOfGame(game.gameType).supply.form]();
  }
}
