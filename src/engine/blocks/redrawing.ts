/** Draws outcomes again that were removed (outcomeRemoval.ts): on a thread of its own, which is there only while somebody asks. */
import { Piscina } from 'piscina';
import type { ParSheet } from '../../domain/par.js';

const IDLE_MS = 10_000;
/** Who comes when so many wait is told to come later. */
const WAITING_MAX = 64;

export class Redrawing {
  readonly #thread: Piscina;

  /** @param filename the program of the thread (workers/redraw.js) */
  constructor(filename: string) {
    this.#thread = new Piscina({
      filename,
      minThreads: 0,
      maxThreads: 1,
      maxQueue: WAITING_MAX,
      idleTimeout: IDLE_MS,
    });
  }

  /** @returns packed outcomes; undefined: too many wait for theirs */
  async draw(task: { sheet: ParSheet; seed: Uint8Array; count: number }): Promise<Buffer | undefined> {
    if (this.#thread.queueSize >= WAITING_MAX) return undefined;
    return Buffer.from((await this.#thread.run(task)) as Uint8Array);
  }

  async end(): Promise<void> {
    await this.#thread.destroy();
  }
}
