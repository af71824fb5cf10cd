/**
 * What a partner has in Redis now. A partner may have moved to another cell before this process knows of it: its old cell then says so
 * with what it is asked for, and the new one is read.
 */
import type { PotRecord } from '../../domain/communal.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import type { GameRecord, PlayerRecord } from '../redis/cellRecords.js';
import type { CellStore } from '../redis/cellStore.js';

export type { GameRecord, PlayerRecord };

export interface PartnerReadsOptions {
  readonly cell: (
    cell: number,
  ) => Pick<CellStore, 'findPlayer' | 'findGame' | 'findPot' | 'isTurnedAway' | 'newestInOutbox'>;
  readonly partner: (partnerId: number) => Partner | undefined;
  /** Reads what is new of partners. */
  readonly refresh: () => Promise<void>;
  /** Where the partner is once its old cell should not be asked again (movedPartners.ts); undefined: it was waited for too long. */
  readonly whereIs: (known: Partner, since: number) => Promise<Partner | undefined>;
}

export class PartnerReads {
  readonly #options: PartnerReadsOptions;

  constructor(options: PartnerReadsOptions) {
    this.#options = options;
  }

  /** A player as of its last spin; undefined where it never spun. @throws ApiError (KS-5002) while its partner moves for too long */
  player(partnerId: number, playerId: string): Promise<PlayerRecord | undefined> {
    return this.#read(partnerId, (store) => store.findPlayer(partnerId, playerId));
  }

  /** Counter and queue of a partner's game; undefined before its first block. @throws as {@link player} does */
  game(partnerId: number, gameId: number): Promise<GameRecord | undefined> {
    return this.#read(partnerId, (store) => store.findGame(gameId));
  }

  /** The communal progressive of a partner's game; undefined where it has none. @throws as {@link player} does */
  pot(partnerId: number, gameId: number): Promise<PotRecord | undefined> {
    return this.#read(partnerId, (store) => store.findPot(gameId));
  }

  /** Id of the newest ledger entry in the outbox of a cell, booked or not; 0 where there is none. */
  newestInOutbox(cell: number): Promise<bigint> {
    return this.#options.cell(cell).newestInOutbox();
  }

  async #read<T>(
    partnerId: number,
    read: (store: ReturnType<PartnerReadsOptions['cell']>) => Promise<T>,
  ): Promise<T> {
    const { cell, whereIs } = this.#options;
    const since = performance.now();
    let partner: Partner | undefined = await this.#known(partnerId);
    while (partner !== undefined) {
      const store = cell(partner.cell);
      // Asked behind it on the same connection: what was read before a partner left is what it had.
      const [found, isAway] = await Promise.all([
        read(store),
        store.isTurnedAway(partnerId, partner.newestMove ?? 0),
      ]);
      if (!isAway) return found;
      partner = await whereIs(partner, since);
    }
    throw new ApiError(ERRORS.unavailable);
  }

  /** It may have been made a moment ago. */
  async #known(partnerId: number): Promise<Partner> {
    const { partner, refresh } = this.#options;
    const known = partner(partnerId);
    if (known !== undefined) return known;
    await refresh();
    const now = partner(partnerId);
    if (now === undefined) throw new Error(`Partner ${partnerId} is not in the catalog`);
    return now;
  }
}
