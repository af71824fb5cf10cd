/**
 * Draws outcomes again that were removed (spentOutcomes.store.ts). A separate thread does this work; the
 * thread exists only while there are requests.
 */
import { Piscina } from 'piscina';
import type { ParSheet } from '../../domain/par.js';

const IDLE_MS = 10_000;
/**
 * Maximum number of waiting requests. Further requests are refused, and their callers are asked to try again
 * later.
 */
const WAITING_MAX = 64;

export class Redrawing {
  readonly #thread: Piscina;

  /** @param filename program of the thread (workers/redraw.js) */
  constructor(filename: string) {
    this.#thread = new Piscina({
      filename,
      minThreads: 0,
      maxThreads: 1,
      maxQueue: WAITING_MAX,
      idleTimeout: IDLE_MS,
      recordTiming: false,
    });
  }

  /**
   * Draws packed outcomes again.
   * @returns undefined if too many requests are waiting
   */
  async draw(task: { sheet: ParSheet; seed: Uint8Array; count: number }): Promise<Buffer | undefined> {
    if (this.#thread.queueSize >= WAITING_MAX) return undefined;
    return Buffer.from((await this.#thread.run(task)) as Uint8Array);
  }

  async end(): Promise<void> {
    await this.#thread.destroy();
  }
}
