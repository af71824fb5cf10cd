/** Reminds partners of the end of an API version that nears. Any number of workers may: each reminder is recorded once. */
import type { EventEmitter } from '../events.js';
import { remindOfSunsets } from '../postgres/apiVersions.js';
import type { Sql } from '../postgres/client.js';
import { PeriodicService } from '../runtime/periodicService.js';

export interface SunsetReminderOptions {
  readonly everyMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly events: EventEmitter;
}

export class SunsetReminders extends PeriodicService {
  readonly name = 'API sunset reminders';
  readonly #sql: Sql;
  readonly #options: SunsetReminderOptions;

  constructor(sql: Sql, options: SunsetReminderOptions) {
    // The first look comes at once: the last one may be long ago.
    super({ everyMs: options.everyMs, firstAfterMs: 0 });
    this.#sql = sql;
    this.#options = options;
  }

  protected async turn(): Promise<void> {
    const { now, events } = this.#options;
    const deliveries = await remindOfSunsets(this.#sql, new Date(now()));
    if (deliveries > 0) events.emit('EventsRecorded', { deliveries });
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'API sunset reminder', error });
  }
}
