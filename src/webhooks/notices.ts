/**
 * Records due notices periodically. Several workers may run this task, because each notice is recorded only
 * once.
 */
import type { BackgroundTask, EventEmitter } from '../engine/processEvents.js';
import { PeriodicService } from '../platform/runtime/periodicService.js';

export class Notices extends PeriodicService {
  readonly name: string;

  constructor(
    private readonly options: {
      readonly name: string;
      /** Name of the task in the event that reports a failed check. */
      readonly task: BackgroundTask;
      readonly everyMs: number;
      /** Returns the current time in ms since the epoch. */
      readonly now: () => number;
      /** Records the notices that are due and not yet recorded. Returns the number of new deliveries. */
      readonly record: (now: Date) => Promise<number>;
      readonly events: EventEmitter;
    },
  ) {
    // The notices are checked once at the start, because the last check before the start may have been long
    // ago.
    super({ everyMs: options.everyMs, firstAfterMs: 0 });
    this.name = options.name;
  }

  protected async turn(): Promise<void> {
    const { now, record, events } = this.options;
    const deliveries = await record(new Date(now()));
    if (deliveries > 0) events.emit('EventsRecorded', { deliveries });
  }

  protected onTurnFailed(error: unknown): void {
    this.options.events.emit('TaskFailed', { task: this.options.task, error });
  }
}
