/** Counts what is played by hour, for the charts of the console. */
import type { EventEmitter } from '../events.js';
import type { Sql } from '../postgres/client.js';
import { countTrafficHours } from '../postgres/trafficHours.js';
import { PeriodicService } from '../runtime/periodicService.js';

export class TrafficHours extends PeriodicService {
  readonly name = 'hours of traffic';
  readonly #sql: Sql;
  readonly #events: EventEmitter;

  constructor(sql: Sql, everyMs: number, events: EventEmitter) {
    super({ everyMs, firstAfterMs: everyMs });
    this.#sql = sql;
    this.#events = events;
  }

  protected turn(): Promise<void> {
    return countTrafficHours(this.#sql);
  }

  protected onTurnFailed(error: unknown): void {
    this.#events.emit('TaskFailed', { task: 'hours of traffic', error });
  }
}
