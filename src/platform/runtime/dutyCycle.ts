/**
 * Runs long background work in short pieces with pauses, so that the cores are free most of the time for work
 * that others wait for.
 */
import { setTimeout as rest, setImmediate as turnOfLoop } from 'node:timers/promises';

/**
 * Minimum duration of work before a pause, in ms. A pause after less work would not be worth the cost of its
 * timer.
 */
const PIECE_MS = 2;
/** Maximum pause, in ms, so that ending the work never takes long. */
const REST_MS_MAX = 100;

export class DutyCycle {
  #beganMs = performance.now();

  /**
   * @param share maximum fraction of the time that the work may use, above 0 and up to 1; 1 means no pauses
   */
  constructor(private readonly share: number) {}

  /**
   * Called at the end of each piece of work. Lets the event loop run, and pauses if the work since the last
   * pause has taken long enough.
   */
  async pieceEnded(): Promise<void> {
    const workedMs = performance.now() - this.#beganMs;
    if (this.share === 1 || workedMs < PIECE_MS) {
      await turnOfLoop();
      return;
    }
    await rest(Math.min(REST_MS_MAX, workedMs * (1 / this.share - 1)));
    this.#beganMs = performance.now();
  }
}
