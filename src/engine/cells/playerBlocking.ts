/**
 * Blocks and unblocks players. A change is recorded in Postgres first and then written to Redis, where spins
 * see it.
 *
 * Each change has a number, so that a late call can't undo a newer change. If a request was interrupted, its
 * repetition writes the newest recorded status to Redis. A rebuild of the cell writes that status, too.
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
  /** Maximum time to change a player's status in Postgres and Redis, including retries, in ms. */
  readonly deadlineMs: number;
}

const POLL_MS = 50;

export class PlayerBlocking {
  readonly #options: PlayerBlockingOptions;

  constructor(options: PlayerBlockingOptions) {
    this.#options = options;
  }

  /**
   * Changes the status of a player.
   * @returns `unavailable` if the change is recorded in Postgres but not in Redis yet; a repetition of the
   * request writes it to Redis. `unknownPlayer` if the player does not exist; the recorded status is then
   * reset.
   * @throws the error of Postgres
   */
  async change(actor: string, wanted: PlayerStatusChange): Promise<'done' | 'unavailable' | 'unknownPlayer'> {
    const { store, cells, deadlineMs } = this.#options;
    const deadline = performance.now() + deadlineMs;
    while (performance.now() < deadline) {
      // Each attempt reads the current epoch and the newest recorded change again, because another request
      // may have recorded a change in the meantime.
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
          reason: 'the player does not exist',
        });
      }
      return 'unknownPlayer';
    }
    return 'unavailable';
  }
}
