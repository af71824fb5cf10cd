/** Selects the block maker of a game by the kind of the game. */
import type { Piscina } from 'piscina';
import { kindOfGame } from '../../domain/games/index.js';
import type { GameSource, GameStatus, GameType, OutcomeSource } from '../../domain/games/kindOfGame.js';
import type { ParSheet } from '../../domain/par.js';
import type { Sql } from '../../postgres/connection.js';
import { sheetsOf } from '../catalog/catalog.store.js';
import type { CellLease } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import { PoolMaker } from '../raffles/poolMaker.js';
import { type BlockMaker, blockSizeFor, type MadeBlock, runsLow } from './blockMaker.js';
import { Reserve } from './reserve.js';

/** Number of outcomes in a block of an idle slot game, which takes 4 KB of Redis. */
export const BLOCK_OUTCOMES_MIN = 2048;
const BLOCK_OUTCOMES_MAX = 262_144;
/** Number of shoes in a block of an idle table. The seeds of these shoes take 8 KB. */
const SHOES_MIN = 256;
/** A thread takes about 0.2 s to make a block of this size. */
const SHOES_MAX = 8192;

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
    // Blocks of slots and shoes are made before they are needed. A game has at least `minReadyBlocks` + 1
    // blocks, and outcomes for the next seconds at its pace. The size of a block follows the pace.
    const ahead = (
      least: number,
      most: number,
      make: (fromIndex: number, count: number) => Promise<MadeBlock>,
    ): BlockMaker => {
      const place = { gameId, partnerId, lease };
      const reserve = new Reserve(this.sql, place, minReadyBlocks, events, reserveSeconds);
      return {
        reserve,
        isLow: (queue) => runsLow(queue, reserve),
        make: (fromIndex, pace) => make(fromIndex, blockSizeFor(pace, least, most)),
        loaded: async () => {},
      };
    };
    const makers: { readonly [F in OutcomeSource['form']]: () => BlockMaker } = {
      blocks: () => {
        const sheetId = game.parSheetId!;
        return ahead(BLOCK_OUTCOMES_MIN, BLOCK_OUTCOMES_MAX, async (fromIndex, count) => {
          const sheet = await this.#sheets.get(sheetId);
          return this.pool.run({ sheetId, sheet, gameId, fromIndex, count });
        });
      },
      pool: () => {
        const order = { gameId, table: game.prizeTable! };
        return new PoolMaker(this.sql, this.pool, sealer, order, game.sealedAt !== null);
      },
      shoes: () => {
        const { rules } = game.table!;
        return ahead(SHOES_MIN, SHOES_MAX, (fromIndex, count) =>
          this.pool.run({ gameId, rules, fromIndex, count }, { filename: shoemaker }),
        );
      },
    };
    return makers[kindOfGame(game.gameType).outcomeSource.form]();
  }
}

/** PAR sheets by number. Each sheet is read only once, because it never changes. */
class SheetCache {
  readonly #sheets = new Map<number, Promise<ParSheet>>();

  constructor(private readonly sql: Sql) {}

  /** @throws Error if the database has no such sheet */
  get(sheetId: number): Promise<ParSheet> {
    let sheet = this.#sheets.get(sheetId);
    if (sheet === undefined) {
      sheet = sheetsOf(this.sql, [sheetId]).then((sheets) => {
        const found = sheets.get(sheetId);
        if (found === undefined) throw new Error(`PAR sheet ${sheetId} is not in the database`);
        return found;
      });
      sheet.catch(() => this.#sheets.delete(sheetId));
      this.#sheets.set(sheetId, sheet);
    }
    return sheet;
  }
}
