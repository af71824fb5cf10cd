/**
 * Ends transactions that hold cells while their process is paused. A worker that is paused during a COPY
 * keeps the locks on the rows of its cells. Postgres never ends a COPY that waits for its client, whatever
 * `statement_timeout` says, so nobody could take the cells over.
 */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { endStalledSessions } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';

const TURN_MS = 2500;

export class StalledSessions extends PeriodicService {
  readonly name = 'stalled transaction check';

  constructor(
    private readonly sql: Sql,
    private readonly events: EventEmitter,
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
  }

  protected async turn(): Promise<void> {
    const ended = await endStalledSessions(this.sql);
    if (ended > 0) this.events.emit('StalledSessionsEnded', { sessions: ended });
  }

  protected onTurnFailed(error: unknown): void {
    this.events.emit('TaskFailed', { task: 'stalled transaction check', error });
  }
}
