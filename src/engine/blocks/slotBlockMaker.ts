/**
 * Makes the blocks of a slot game before they are needed. Outcomes are drawn by the game's PAR sheet. A game
 * has at least `minReadyBlocks` + 1 blocks, and outcomes for the next seconds at its pace. The size of a
 * block follows the pace.
 */
import type { Piscina } from 'piscina';
import type { ParSheet } from '../../domain/par.js';
import type { Sql } from '../../postgres/connection.js';
import { sheetsOf } from '../catalog/catalog.store.js';
import { type BlockMaker, blockSizeFor, type MadeBlock, type QueueState, runsLow } from './blockMaker.js';
import type { Reserve } from './reserve.js';

/** Task of a pool thread that makes a block (workers/makeBlock.ts). */
export interface BlockOrder {
  readonly sheetId: number;
  readonly sheet: ParSheet;
  readonly gameId: number;
  readonly fromIndex: number;
  readonly count: number;
}

/** Number of outcomes in a block of an idle game, which takes 4 KB of Redis. */
export const BLOCK_OUTCOMES_MIN = 2048;
const BLOCK_OUTCOMES_MAX = 262_144;

export class SlotBlockMaker implements BlockMaker {
  constructor(
    private readonly pool: Piscina,
    private readonly sheets: SheetCache,
    private readonly game: { readonly gameId: number; readonly sheetId: number },
    readonly reserve: Reserve,
  ) {}

  isLow(queue: QueueState): boolean {
    return runsLow(queue, this.reserve);
  }

  async make(fromIndex: number, pace: number): Promise<MadeBlock> {
    const { gameId, sheetId } = this.game;
    const sheet = await this.sheets.get(sheetId);
    const count = blockSizeFor(pace, BLOCK_OUTCOMES_MIN, BLOCK_OUTCOMES_MAX);
    const order: BlockOrder = { sheetId, sheet, gameId, fromIndex, count };
    return this.pool.run(order);
  }

  async loaded(): Promise<void> {}
}

/** PAR sheets by number. Each sheet is read only once, because it never changes. */
export class SheetCache {
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
