/** Selects the block maker of a game by the kind of the game. */
import type { Piscina } from 'piscina';
import { kindOfGame } from '../../domain/games/index.js';
import type { GameSource, GameStatus, GameType, OutcomeSource } from '../../domain/games/kindOfGame.js';
import type { Sql } from '../../postgres/connection.js';
import { ShoeBlockMaker } from '../blackjack/shoeBlockMaker.js';
import type { CellLease } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import { PoolMaker } from '../raffles/poolMaker.js';
import type { BlockMaker } from './blockMaker.js';
import { Reserve } from './reserve.js';
import { SheetCache, SlotBlockMaker } from './slotBlockMaker.js';

export interface KeptGame extends GameSource {
  readonly gameId: number;
  readonly partnerId: number;
  readonly cell: number;
  readonly gameType: GameType;
  /**
   * Time when the raffle's pool was opened for sale. Null if the pool is not open yet, or the game has no
   * pool.
   */
  readonly sealedAt: Date | null;
  readonly status: GameStatus;
  readonly blocksRequested: number;
}

export interface BlockMakersOptions {
  readonly minReadyBlocks: (partnerId: number) => number;
  /** File of the program with which a pool thread seals raffles. */
  readonly sealer: string;
  /** File of the program with which a pool thread makes shoes. */
  readonly shoemaker: string;
  /** Length of the reserve of outcomes, in seconds at the game's present pace. */
  readonly reserveSeconds: number;
  readonly events: EventEmitter;
}

export class BlockMakers {
  readonly #sheets: SheetCache;

  constructor(
    private readonly sql: Sql,
    private readonly pool: Piscina,
    private readonly options: BlockMakersOptions,
  ) {
    this.#sheets = new SheetCache(sql);
  }

  of(game: KeptGame, lease: CellLease): BlockMaker {
    const { gameId, partnerId } = game;
    const { minReadyBlocks, events, reserveSeconds, sealer, shoemaker } = this.options;
    const reserve = (): Reserve =>
      new Reserve(this.sql, { gameId, partnerId, lease }, minReadyBlocks, events, reserveSeconds);
    const makers: { readonly [F in OutcomeSource['form']]: () => BlockMaker } = {
      blocks: () => {
        const order = { gameId, sheetId: game.parSheetId! };
        return new SlotBlockMaker(this.pool, this.#sheets, order, reserve());
      },
      pool: () => {
        const order = { gameId, table: game.prizeTable! };
        return new PoolMaker(this.sql, this.pool, sealer, order, game.sealedAt !== null);
      },
      shoes: () => {
        const order = { gameId, rules: game.table!.rules };
        return new ShoeBlockMaker(this.pool, shoemaker, order, reserve());
      },
    };
    return makers[kindOfGame(game.gameType).outcomeSource.form]();
  }
}
