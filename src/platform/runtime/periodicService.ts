/** A service that takes one turn after another: a poll, a cleanup, a renewal. Turns never overlap. */
import { HEALTHY, type Health, type Service, unhealthy } from './service.js';

export interface Period {
  /** Rest between the end of a turn and the begin of the next. */
  readonly everyMs: number;
  /** Rest before the first turn; 0: it is taken at once. */
  readonly firstAfterMs: number;
  /** While turns find nothing to do, each rest is twice as long as the one before, up to this. Absent: rests stay as they are. */
  readonly idleMs?: number;
}

/** The `idleMs` of a service that is woken as soon as there is something to do: it looks all the same, in case that it was not. */
export const WOKEN_MS = 60_000;

/** What a turn gives that found nothing to do. */
export const IDLE = Symbol('a turn that found nothing to do');

export abstract class PeriodicService implements Service {
  abstract readonly name: string;
  readonly #period: Period;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #turns: Promise<void> = Promise.resolve();
  /** The next turn was asked for, and has not begun. */
  #isHurried = false;
  /** As performance.now() counts. */
  #notBeforeMs = 0;
  /** The rest after the newest turn. */
  #periodMs: number;
  #problem: string | undefined;

  constructor(period: Period) {
    this.#period = period;
    this.#periodMs = period.everyMs;
  }

  async start(): Promise<void> {
    this.#schedule(this.#period.firstAfterMs);
  }

  /** Resolves once the turn that is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    clearTimeout(this.#timer);
    await this.#turns;
  }

  /** Unhealthy from a turn that failed to the next one that succeeds. */
  health(): Health {
    return this.#problem === undefined ? HEALTHY : unhealthy(this.#problem);
  }

  protected get isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  /** The work; {@link IDLE} where there was none. What it throws goes to `onTurnFailed`; the next turn comes all the same. A long turn ends early once `isStopped`. */
  protected abstract turn(): Promise<unknown>;

  /** Not called where the stop overtook the turn: its connections may be closed already. */
  protected abstract onTurnFailed(error: unknown): void;

  /** Takes a turn now, after one that may be under way. Never rejects. */
  protected takeTurn(): Promise<void> {
    this.#turns = this.#turns.then(() => this.#take());
    return this.#turns;
  }

  /** The next turn comes at once, or right after the one that is under way. */
  protected hurry(): void {
    this.#isHurried = true;
    this.#notBeforeMs = 0;
    this.#schedule(0);
  }

  /** The next turn comes after the milliseconds, unless it is to come at once. What is under way is no next turn. */
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
      if ((await this.turn()) === IDLE) this.#periodMs = longerMs;
      this.#problem = undefined;
    } catch (error) {
      if (this.isStopped) return;
      this.#problem = error instanceof Error ? error.message : String(error);
      this.onTurnFailed(error);
    }
  }
}
