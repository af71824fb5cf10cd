/**
 * Keeps the checkpoints of the players close to the newest ledger entries, so that a rebuild has few entries
 * to read.
 */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import type { EventEmitter } from '../processEvents.js';
import { checkpointPlayers } from './recoveries.store.js';

const TURN_MS = 30_000;

export class PlayerCheckpoints extends PeriodicService {
  readonly name = 'player checkpoints';

  /**
   * @param everyMs time span of ledger entries after a checkpoint at which the next checkpoint is made, in ms
   */
  constructor(
    private readonly sql: Sql,
    private readonly everyMs: number,
    private readonly events: EventEmitter,
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
  }

  protected async turn(): Promise<void> {
    const started = performance.now();
    let made = 0;
    while (!this.isStopped) {
      const players = await checkpointPlayers(this.sql, this.everyMs);
      if (players === undefined) break;
      made += players;
    }
    const seconds = (performance.now() - started) / 1000;
    if (made > 0) this.events.emit('PlayersCheckpointed', { players: made, seconds });
  }

  protected onTurnFailed(error: unknown): void {
    this.events.emit('TaskFailed', { task: 'player checkpoint', error });
  }
}
