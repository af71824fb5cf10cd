/**
 * Stops a worker without POSITION_FILE from dealing while Postgres has a position file on record. The file
 * might have proved that Postgres was restored to an older state.
 */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { type EventEmitter, taskFailed } from '../processEvents.js';
import { missingCopy } from './outsideCopies.store.js';

/**
 * Poll interval of the record of a position file, in ms. An operator may have removed the record in the
 * meantime.
 */
const EVERY_MS = 1000;
const SETTING = 'POSITION_FILE';

export class AbsentPosition extends PeriodicService {
  readonly name = 'absent position file';
  #problem: string | undefined = 'Postgres has not been asked yet whether a position file is on record';

  constructor(
    private readonly sql: Sql,
    private readonly events: EventEmitter,
  ) {
    super({ everyMs: EVERY_MS }, taskFailed(events, 'position file'));
  }

  /** Checks for the first time whether a position file is on record, before any cell is prepared. */
  override async start(): Promise<void> {
    await this.takeTurn();
    if (this.#problem !== undefined) await super.start();
  }

  /**
   * Reason why this worker must not deal. Undefined if no position file is on record, or if an operator has
   * removed the record.
   */
  get problem(): string | undefined {
    return this.#problem;
  }

  protected async turn(): Promise<void> {
    if (this.#problem === undefined) return;
    const reason = await missingCopy(this.sql, SETTING, undefined);
    if (reason !== undefined && reason !== this.#problem)
      this.events.emit('OutsideCopyMissing', { setting: SETTING, reason });
    this.#problem = reason;
  }
}
