/** A worker without POSITION_FILE deals nothing while Postgres has a position file on record: it might have shown an older state. */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import type { EventEmitter } from '../processEvents.js';
import { missingCopy } from './outsideCopies.store.js';

/** An operator may have decided meanwhile. */
const EVERY_MS = 1000;
const SETTING = 'POSITION_FILE';

export class AbsentPosition extends PeriodicService {
  readonly name = 'absent position file';
  readonly #sql: Sql;
  readonly #events: EventEmitter;
  #problem: string | undefined = 'It is not known yet whether Postgres has a position file on record';

  constructor(sql: Sql, events: EventEmitter) {
    super({ everyMs: EVERY_MS, firstAfterMs: EVERY_MS });
    this.#sql = sql;
    this.#events = events;
  }

  /** Before any cell is prepared. */
  override async start(): Promise<void> {
    await this.takeTurn();
    if (this.#problem !== undefined) await super.start();
  }

  /** Why nothing may be dealt; undefined: no position file is on record, or an operator has given it up. */
  get problem(): string | undefined {
    return this.#problem;
  }

  protected async turn(): Promise<void> {
    if (this.#problem === undefined) return;
    const reason = await missingCopy(this.#sql, SETTING, undefined);
    if (reason !== undefined && reason !== this.#problem)
      this.#events.emit('OutsideCopyMissing', { setting: SETTING, reason });
    this.#problem = reason;
  }

  protected onTurnFailed(error: unknown): void {
    this.#events.emit('TaskFailed', { task: 'position file', error });
  }
}
