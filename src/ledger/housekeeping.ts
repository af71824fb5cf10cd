/** Clears away, in the cells that this worker owns, what no script needs any more. */
import type { RedisNodes } from '../redis/nodes.js';

const TURN_MS = 60_000;
/** Periods looked back over: a service that was down for longer leaves its oldest keys. */
const PERIODS_BACK = 40;
/** A front end that sent no batch for this long is gone, and the reply kept for it with it. */
const OPERATION_KEPT_MS = 3_600_000;

export class Housekeeping {
  readonly #nodes: RedisNodes;
  readonly #periodSeconds: number;
  readonly #cells: () => readonly number[];
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    nodes: RedisNodes,
    periodSeconds: number,
    cells: () => readonly number[],
    onError: (error: unknown) => void,
  ) {
    this.#nodes = nodes;
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
    const store = this.#nodes.cell(cell);
    const nowMs = await store.node.timeMs();
    const period = Math.floor(nowMs / 1000 / this.#periodSeconds);
    // The current period and the one before are read by the spin script.
    await store.unlinkPeriods(Array.from({ length: PERIODS_BACK }, (_, back) => period - 2 - back));
    await store.forgetOperationsBefore(nowMs - OPERATION_KEPT_MS);
  }
}
