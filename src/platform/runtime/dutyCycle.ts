/** Long work in the background, in short pieces: between them it rests, so that what others wait for has the cores most of the time. */
import { setTimeout as rest, setImmediate as turnOfLoop } from 'node:timers/promises';

/** Shorter pieces are not worth a timer. */
const PIECE_MS = 2;
/** So that whoever ends the work does not wait for it. */
const REST_MS_MAX = 100;

export class DutyCycle {
  readonly #share: number;
  #beganMs = performance.now();

  /** @param share of the time that the work takes at the most, above 0 to 1; with 1 it never rests */
  constructor(share: number) {
    this.#share = share;
  }

  /** Where a piece ends: lets the event loop turn, and rests where the pieces since the last rest have taken long enough. */
  async pieceEnded(): Promise<void> {
    const workedMs = performance.now() - this.#beganMs;
    if (this.#share === 1 || workedMs < PIECE_MS) {
      await turnOfLoop();
      return;
    }
    await rest(Math.min(REST_MS_MAX, workedMs * (1 / this.#share - 1)));
    this.#beganMs = performance.now();
  }
}
