/** Tells the operator by e-mail of a day whose settlement is overdue for a day. Any number of workers may: once for each day. */
import type { EventEmitter } from '../events.js';
import type { Store } from '../postgres/store.js';
import { PeriodicService } from '../runtime/periodicService.js';

export interface OverdueNoticeOptions {
  readonly everyMs: number;
  /** The operator's address; undefined: nobody is told. */
  readonly recipient: string | undefined;
  /** The oldest day without a complete report, and for how long it has been over. */
  readonly overdue: () => { readonly date: string; readonly seconds: number } | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly events: EventEmitter;
}

const OVERDUE_SECONDS = 86_400;

export class OverdueNotice extends PeriodicService {
  readonly name = 'overdue settlement notice';
  readonly #noticeOverdue: Store['noticeOverdueSettlement'];
  readonly #options: OverdueNoticeOptions;

  constructor(noticeOverdue: Store['noticeOverdueSettlement'], options: OverdueNoticeOptions) {
    super({ everyMs: options.everyMs, firstAfterMs: options.everyMs });
    this.#noticeOverdue = noticeOverdue;
    this.#options = options;
  }

  async turn(): Promise<void> {
    const { recipient, overdue, now, events } = this.#options;
    const oldest = overdue();
    if (recipient === undefined || oldest === undefined || oldest.seconds < OVERDUE_SECONDS) return;
    const deliveries = await this.#noticeOverdue(oldest.date, recipient, new Date(now()));
    if (deliveries > 0) events.emit('EventsRecorded', { deliveries });
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'overdue settlement notice', error });
  }
}
