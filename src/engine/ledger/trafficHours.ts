/** Periodically counts the traffic of each hour, for the charts of the console. */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import type { EventEmitter } from '../processEvents.js';
import { countTrafficHours } from './trafficHours.store.js';

export class TrafficHours extends PeriodicService {
  readonly name = 'traffic statistics';

  constructor(
    private readonly sql: Sql,
    everyMs: number,
    private readonly events: EventEmitter,
  ) {
    super({ everyMs, firstAfterMs: everyMs });
  }

  protected turn(): Promise<void> {
    return countTrafficHours(this.sql);
  }

  protected onTurnFailed(error: unknown): void {
    this.events.emit('TaskFailed', { task: 'traffic statistics', error });
  }
}
