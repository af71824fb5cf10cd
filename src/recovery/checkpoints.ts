/** Keeps the checkpoints of the players near the ledger, so that a rebuild has little to read. */
import type { Sql } from '../postgres/client.js';
import { checkpointPlayers } from '../postgres/recoveries.js';

const TURN_MS = 30_000;

export interface CheckpointOptions {
  /** No checkpoint is made before entries of so much time are to be accounted for, milliseconds. */
  readonly everyMs: number;
  readonly onMade: (players: number, seconds: number) => void;
  readonly onError: (error: unknown) => void;
}

export class Checkpoints {
  readonly #sql: Sql;
  readonly #options: CheckpointOptions;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(sql: Sql, options: CheckpointOptions) {
    this.#sql = sql;
    this.#options = options;
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#turn = this.#make().finally(() => {
        if (this.#timer !== undefined) this.start();
      });
    }, TURN_MS);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#turn;
  }

  async #make(): Promise<void> {
    const started = performance.now();
    let made = 0;
    try {
      while (this.#timer !== undefined) {
        const players = await checkpointPlayers(this.#sql, this.#options.everyMs);
        if (players === undefined) break;
        made += players;
      }
      if (made > 0) this.#options.onMade(made, (performance.now() - started) / 1000);
    } catch (error) {
      this.#options.onError(error);
    }
  }
}
