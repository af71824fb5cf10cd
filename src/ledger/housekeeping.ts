/** Clears away, in the cells that this worker owns, what no script needs any more. */
import type { RedisClient } from '../redis/client.js';
import { cellKey, idempotencyKey } from '../redis/keys.js';

const TURN_MS = 60_000;
/** Periods looked back over: a service that was down for longer leaves its oldest keys. */
const PERIODS_BACK = 40;
/** A front end that sent no batch for this long is gone, and the reply kept for it with it. */
const OPERATION_KEPT_MS = 3_600_000;
const TIME_AT = 8;

export class Housekeeping {
  readonly #redis: RedisClient;
  readonly #periodSeconds: number;
  readonly #cells: () => readonly number[];
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    redis: RedisClient,
    periodSeconds: number,
    cells: () => readonly number[],
    onError: (error: unknown) => void,
  ) {
    this.#redis = redis;
    this.#periodSeconds = periodSeconds;
    this.#cells = cells;
    this.#onError = onError;
  }

  start(): void {
    this.#timer = setInterval(() => {
      Promise.all(this.#cells().map((cell) => this.tidy(cell))).catch(this.#onError);
    }, TURN_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Of a cell that was just taken over. */
  tidySoon(cell: number): void {
    this.tidy(cell).catch(this.#onError);
  }

  /** Unlinks the idempotency periods that bind no longer, and forgets front ends that are gone. */
  async tidy(cell: number): Promise<void> {
    const [seconds] = await this.#redis.time();
    const period = Math.floor(Number(seconds) / this.#periodSeconds);
    // The current period and the one before are read by the spin script.
    const ended = Array.from({ length: PERIODS_BACK }, (_, back) => idempotencyKey(cell, period - 2 - back));
    await this.#redis.unlink(...ended);
    const fields = await this.#redis.hgetallBuffer(cellKey(cell));
    const gone = Object.entries(fields)
      .filter(([name, reply]) => {
        if (!name.startsWith('op:')) return false;
        return reply.readUIntLE(TIME_AT, 6) < Number(seconds) * 1000 - OPERATION_KEPT_MS;
      })
      .map(([name]) => name);
    if (gone.length > 0) await this.#redis.hdel(cellKey(cell), ...gone);
  }
}
