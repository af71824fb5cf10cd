/** Looks from time to time for what somebody is to be notified of. Any number of workers may: each notice is recorded once. */
import type { BackgroundTask, EventEmitter } from '../engine/processEvents.js';
import { PeriodicService } from '../platform/runtime/periodicService.js';

export interface NoticesOptions {
  readonly name: string;
  /** What is named where a look failed. */
  readonly task: BackgroundTask;
  readonly everyMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Records the notices that are due and were not given; gives how many deliveries there are to make. */
  readonly record: (now: Date) => Promise<number>;
  readonly events: EventEmitter;
}

export class Notices extends PeriodicService {
  readonly name: string;
  readonly #options: NoticesOptions;

  constructor(options: NoticesOptions) {
    // The first look comes at once: the last one may be long ago.
    super({ everyMs: options.everyMs, firstAfterMs: 0 });
    this.name = options.name;
    this.#options = options;
  }

  protected async turn(): Promise<void> {
    const { now, record, events } = this.#options;
    const deliveries = await record(new Date(now()));
    if (deliveries > 0) events.emit('EventsRecorded', { deliveries });
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: this.#options.task, error });
  }
}
