/**
 * Periodically removes the outcomes of blocks that were exhausted long ago. Any number of workers may do so
 * at once.
 */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import type { EventEmitter } from '../processEvents.js';
import { markExhausted, removeOutcomes } from './spentOutcomes.store.js';

/** Number of days for which a block's outcomes are kept after the block was found exhausted. */
export const OUTCOMES_KEPT_DAYS = 90;
const TURN_MS = 600_000;
const FIRST_AFTER_MS = 5000;

export class OutcomeRemoval extends PeriodicService {
  readonly name = 'outcome removal';

  constructor(
    private readonly sql: Sql,
    private readonly events: EventEmitter,
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: FIRST_AFTER_MS });
  }

  protected async turn(): Promise<void> {
    while (!this.isStopped && (await markExhausted(this.sql)) > 0);
    while (!this.isStopped) {
      const blocks = await removeOutcomes(this.sql, OUTCOMES_KEPT_DAYS);
      if (blocks === 0) return;
      this.events.emit('OutcomesRemoved', { blocks });
    }
  }

  protected onTurnFailed(error: unknown): void {
    this.events.emit('TaskFailed', { task: 'outcome removal', error });
  }
}
