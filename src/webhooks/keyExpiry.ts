/** Looks from time to time for API keys that near their expiry. Any number of workers may: each notice is given once. */
import type { Sql } from '../postgres/client.js';
import { noticeExpiringKeys } from '../postgres/notices.js';

export interface KeyExpiryOptions {
  readonly everyMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** So many deliveries were recorded. */
  readonly onEvents: (deliveries: number) => void;
  readonly onError: (error: unknown) => void;
}

export class KeyExpiry {
  readonly #sql: Sql;
  readonly #options: KeyExpiryOptions;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(sql: Sql, options: KeyExpiryOptions) {
    this.#sql = sql;
    this.#options = options;
  }

  /** Looks at once, since the last look may be long ago, and then each time. */
  start(): void {
    const look = (): void => {
      this.#turn = this.#turn.then(() => this.#look());
    };
    this.#timer = setInterval(look, this.#options.everyMs);
    look();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#turn;
  }

  async #look(): Promise<void> {
    try {
      const deliveries = await noticeExpiringKeys(this.#sql, new Date(this.#options.now()));
      if (deliveries > 0) this.#options.onEvents(deliveries);
    } catch (error) {
      this.#options.onError(error);
    }
  }
}
