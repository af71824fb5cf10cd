/**
 * Blocks players and lets them play again: on record in Postgres first, then in Redis, where spins see it.
 *
 * Each change has a number, so a late call undoes no newer change. Ended in between, the repetition of the request brings
 * the newest status on record to Redis; so does a rebuild.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { EngineStore } from '../engine.store.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import type { PlayerStatusChange, PlayerStatusOnRecord } from './playerStatuses.store.js';
import { SET_PLAYER_STATUS } from './setPlayerStatus.js';

export interface PlayerBlockingOptions {
  readonly store: Pick<EngineStore, 'playerStatuses'>;
  readonly cells: Pick<CellClient, 'execute'>;
  /** How long the stores are tried, all tries included. */
  readonly deadlineMs: number;
}

const POLL_MS = 50;

export class PlayerBlocking {
  readonly #options: PlayerBlockingOptions;

  constructor(options: PlayerBlockingOptions) {
    this.#options = options;
  }

  /**
   * @returns `unavailable`: the change is on record, and the same request brings it to Redis later. `unknownPlayer`: there is
   *   no such player; what was on record is taken back.
   * @throws what Postgres throws.
   */
  async change(actor: string, wanted: PlayerStatusChange): Promise<'done' | 'unavailable' | 'unknownPlayer'> {
    const { store, cells, deadlineMs } = this.#options;
    const deadline = performance.now() + deadlineMs;
    while (performance.now() < deadline) {
      // Read anew each time: the epoch that it is to be done under, and what another request has changed meanwhile.
      const onRecord: PlayerStatusOnRecord = await store.playerStatuses.record(actor, wanted);
      const outcome = await cells.execute(SET_PLAYER_STATUS, {
        ...onRecord,
        waitsForLedger: false,
        deadline,
      });
      if (outcome.kind === 'epochMoved') {
        await pause(POLL_MS);
        continue;
      }
      if (outcome.kind !== 'reply') return 'unavailable';
      if (outcome.reply.status === SPIN_STATUS.dealt) return 'done';
      if (onRecord.status !== 'ACTIVE') {
        await store.playerStatuses.record(actor, {
          ...wanted,
          status: 'ACTIVE',
          reason: 'there is no such player',
        });
      }
      return 'unknownPlayer';
    }
    return 'unavailable';
  }
}
