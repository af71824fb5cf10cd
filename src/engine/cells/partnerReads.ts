/**
 * Reads the current data of a partner from Redis. If the partner has moved to another cell that this process
 * does not know of yet, the reply of the old cell tells so, and the new cell is read instead. If the
 * partner's move takes too long, a read fails with KS-5002.
 */
import type { PotRecord } from '../../domain/communal.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import type { Catalog } from '../catalog/catalog.js';
import type { GameRecord, PlayerRecord } from '../redis/cellRecords.js';
import type { CellStore } from '../redis/cellStore.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { MovedPartners } from './movedPartners.js';

export type { GameRecord, PlayerRecord };

export class PartnerReads {
  constructor(
    private readonly nodes: Pick<RedisNodes, 'cell'>,
    private readonly catalog: Pick<Catalog, 'partner' | 'refresh'>,
    private readonly moved: Pick<MovedPartners, 'where'>,
  ) {}

  /** Returns a player as of its last spin, or undefined if it has never spun. */
  player(partnerId: number, playerId: string): Promise<PlayerRecord | undefined> {
    return this.#read(partnerId, (store) => store.findPlayer(partnerId, playerId));
  }

  /**
   * Returns the counter and queue of a partner's game, or undefined before the game's first block is loaded.
   */
  game(partnerId: number, gameId: number): Promise<GameRecord | undefined> {
    return this.#read(partnerId, (store) => store.findGame(gameId));
  }

  /** Returns the communal progressive of a partner's game, or undefined if it has none. */
  pot(partnerId: number, gameId: number): Promise<PotRecord | undefined> {
    return this.#read(partnerId, (store) => store.findPot(gameId));
  }

  /**
   * Returns the entry that the requestId of a partner's spin is bound to in Redis, or undefined if Redis does
   * not bind it.
   */
  bound(partnerId: number, requestId: string): Promise<bigint | undefined> {
    return this.#read(partnerId, (store) => store.findBound(partnerId, requestId));
  }

  /**
   * Returns the id of the newest ledger entry in a cell's outbox, committed or not, or 0 if the outbox is
   * empty.
   */
  newestInOutbox(cell: number): Promise<bigint> {
    return this.nodes.cell(cell).newestInOutbox();
  }

  async #read<T>(partnerId: number, read: (store: CellStore) => Promise<T>): Promise<T> {
    const since = performance.now();
    let partner: Partner | undefined = await this.#known(partnerId);
    while (partner !== undefined) {
      const store = this.nodes.cell(partner.cell);
      // The check for a move follows the read on the same connection. If the partner had not left the cell by
      // the time of the check, the data was current.
      const [found, isAway] = await Promise.all([
        read(store),
        store.isTurnedAway(partnerId, partner.newestMove ?? 0),
      ]);
      if (!isAway) return found;
      partner = await this.moved.where(partner, since);
    }
    throw new ApiError(ERRORS.unavailable);
  }

  /**
   * Finds a partner in the catalog. The catalog is read once more if necessary, because the partner may be
   * new.
   */
  async #known(partnerId: number): Promise<Partner> {
    const known = this.catalog.partner(partnerId);
    if (known !== undefined) return known;
    await this.catalog.refresh();
    const now = this.catalog.partner(partnerId);
    if (now === undefined) throw new Error(`Partner ${partnerId} is not in the catalog`);
    return now;
  }
}
