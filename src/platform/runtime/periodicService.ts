/**
 * Base class of services that repeat a task, such as a poll, a cleanup or a renewal. One execution of the
 * task is called a turn. Turns never overlap.
 */
import { HEALTHY, type Health, type Service, unhealthy } from './service.js';

export interface Period {
  /** Pause between the end of a turn and the start of the next, in ms. */
  readonly everyMs: number;
  /** Pause before the first turn, in ms; 0 means that it starts at once. The default is `everyMs`. */
  readonly firstAfterMs?: number;
  /**
   * Maximum pause, in ms, after turns that found nothing to do: each such turn doubles the pause, up to this
   * maximum. If absent, all pauses are the same.
   */
  readonly idleMs?: number;
}

/**
 * Value of `idleMs` for services that are woken when there is work. They still check occasionally, in case a
 * wake-up was lost.
 */
export const WOKEN_MS = 60_000;

/** Result of a periodic service's turn that found nothing to do. */
export const IDLE = Symbol('a turn that found nothing to do');

export abstract class PeriodicService implements Service {
  abstract readonly name: string;
  readonly #period: Period;
  readonly #onTurnFailed: (error: unknown) => void;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #turns: Promise<void> = Promise.resolve();
  /** Whether the next turn was requested and has not begun. */
  #isHurried = false;
  /** Earliest time of the next turn, on the scale of performance.now(). */
  #notBeforeMs = 0;
  /** Pause after the newest turn, in ms. */
  #periodMs: number;
  #problem: string | undefined;

  constructor(period: Period, onTurnFailed: (error: unknown) => void = () => {}) {
    this.#period = period;
    this.#onTurnFailed = onTurnFailed;
    this.#periodMs = period.everyMs;
  }

  async start(): Promise<void> {
    this.#schedule(this.#period.firstAfterMs ?? this.#period.everyMs);
  }

  /** Resolves when the turn that is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    clearTimeout(this.#timer);
    await this.#turns;
  }

  /** The service is unhealthy from a failed turn until the next successful one. */
  health(): Health {
    return this.#problem === undefined ? HEALTHY : unhealthy(this.#problem);
  }

  protected get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  /**
   * Does the work of a turn and returns {@link IDLE} if there was none. An exception goes to `onTurnFailed`,
   * and the next turn follows as usual. A long turn should end early once `stopped` is aborted.
   */
  protected abstract turn(stopped: AbortSignal): Promise<unknown>;

  /**
   * Called when a turn failed, but not after a stop, because the turn may have failed only because its
   * connections were closed.
   */
  protected onTurnFailed(error: unknown): void {
    this.#onTurnFailed(error);
  }

  /** Takes a turn now, or after the turn that is under way. The promise never rejects. */
  protected takeTurn(): Promise<void> {
    this.#turns = this.#turns.then(() => this.#take());
    return this.#turns;
  }

  /** Starts the next turn at once, or directly after the turn that is under way. */
  protected hurry(): void {
    this.#isHurried = true;
    this.#notBeforeMs = 0;
    this.#schedule(0);
  }

  /**
   * Delays the next turn by some milliseconds, unless an immediate turn was requested. A turn that is under
   * way is not affected.
   */
  protected postpone(delayMs: number): void {
    if (this.#isHurried) return;
    this.#notBeforeMs = performance.now() + delayMs;
    this.#schedule(delayMs);
  }

  #schedule(delayMs: number): void {
    if (this.isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isHurried = false;
      void this.takeTurn().then(() => this.#schedule(this.#restMs()));
    }, delayMs);
  }

  #restMs(): number {
    if (this.#isHurried) return 0;
    return Math.max(this.#periodMs, this.#notBeforeMs - performance.now());
  }

  async #take(): Promise<void> {
    if (this.isStopped) return;
    const { everyMs, idleMs = everyMs } = this.#period;
    const longerMs = Math.min(idleMs, 2 * this.#periodMs);
    this.#periodMs = everyMs;
    try {
      if ((await this.turn(this.#stopped.signal)) === IDLE) this.#periodMs = longerMs;
      this.#problem = undefined;
    } catch (error) {
      if (this.isStopped) return;
      this.#problem = error instanceof Error ? error.message : String(error);
      this.onTurnFailed(error);
    }
  }
}

/**
 * A periodic service whose turn is a function. A failed turn only makes the service unhealthy, unless
 * `onTurnFailed` does more.
 */
export class Job extends PeriodicService {
  constructor(
    readonly name: string,
    period: Period | number,
    protected readonly turn: (stopped: AbortSignal) => Promise<unknown>,
    onTurnFailed?: (error: unknown) => void,
  ) {
    super(typeof period === 'number' ? { everyMs: period } : period, onTurnFailed);
  }

  wake(): void {
    this.hurry();
  }
}
