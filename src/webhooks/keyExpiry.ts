/** Looks from time to time for API keys that near their expiry. Any number of workers may: each notice is given once. */
import type { EventEmitter } from '../events.js';
import type { Sql } from '../postgres/client.js';
import { noticeExpiringKeys } from '../postgres/notices.js';
import { PeriodicService } from '../runtime/periodicService.js';

export interface KeyExpiryOptions {
  readonly everyMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly events: EventEmitter;
}

export class KeyExpiry extends PeriodicService {
  readonly name = 'API key expiry';
  readonly #sql: Sql;
  readonly #options: KeyExpiryOptions;

  constructor(sql: Sql, options: KeyExpiryOptions) {
    // The first look comes at once: the last one may be long ago.
    super({ everyMs: options.everyMs, firstAfterMs: 0 });
    this.#sql = sql;
    this.#options = options;
  }

  protected async turn(): Promise<void> {
    const { now, events } = this.#options;
    const deliveries = await noticeExpiringKeys(this.#sql, new Date(now()));
    if (deliveries > 0) events.emit('EventsRecorded', { deliveries });
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'API key expiry check', error });
  }
}
