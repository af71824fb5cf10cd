/**
 * Decides whether a call is repeated, how long to wait before the next attempt, and when no time is left for
 * one.
 */
import { NoAnswerError, SpindleError } from './errors.js';

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
/**
 * Time that a repetition must have, in ms. A repetition that is cut off would replace a known error by an
 * unknown result.
 */
const SHORTEST_REPETITION_MS = 200;

/**
 * Returns whether a spin may be repeated with the same requestId. If not, the same request would fail again.
 */
export const maySpinAgain = (error: unknown): boolean =>
  error instanceof NoAnswerError || (error instanceof SpindleError && error.retry !== 'never');

/** Returns whether a spin with a requestId may have happened, or may still happen, despite this error. */
export const leavesInDoubt = (error: unknown): boolean =>
  error instanceof NoAnswerError || (error instanceof SpindleError && error.happened === 'unknown');

/** Returns whether a read may be repeated. */
export const mayReadAgain = (error: unknown): boolean =>
  error instanceof NoAnswerError || (error instanceof SpindleError && error.retry === 'later');

/** Returns whether an action of a round may be repeated. Its `seq` prevents a second execution. */
export const mayActAgain = (error: unknown): boolean =>
  mayReadAgain(error) || (error instanceof SpindleError && error.retry === 'same-request-id');

/**
 * Returns whether a write without a requestId may be repeated, which requires that it certainly changed
 * nothing.
 */
export const mayWriteAgain = (error: unknown): boolean =>
  error instanceof SpindleError && error.status === 429;

/**
 * Returns the ms to wait before the next attempt: the time of `Retry-After`, if any, plus an exponential
 * back-off with jitter. The jitter spreads out callers that failed at the same time.
 *
 * @param attempt number of the failed attempt, from 1
 */
export function waitMs(attempt: number, error: unknown): number {
  const asked = error instanceof SpindleError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  const backOff = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1));
  return Math.round(asked + backOff * (0.5 + Math.random() / 2));
}

/**
 * Waits for the given ms.
 *
 * @throws the reason of the signal when it is aborted
 */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** The time limit of a call. All attempts at the call and the waits between them end within it. */
export class Deadline {
  readonly #endMs: number;

  /** @param ms time from now, in ms */
  constructor(ms: number) {
    this.#endMs = performance.now() + ms;
  }

  /** Returns the time that is left for an attempt, in ms: at least 0. */
  leftMs(): number {
    return Math.max(0, Math.floor(this.#endMs - performance.now()));
  }

  /**
   * Waits before the next attempt, if an attempt after the wait still fits into the limit.
   *
   * @param ms time to wait
   * @returns whether the next attempt may be made; false at once if the wait is too long
   * @throws the reason of the signal when it is aborted
   */
  async allows(ms: number, signal?: AbortSignal): Promise<boolean> {
    const fits = (afterMs: number): boolean => this.leftMs() >= afterMs + SHORTEST_REPETITION_MS;
    if (!fits(ms)) return false;
    await pause(ms, signal);
    return fits(0);
  }
}

/**
 * Repeats a call until it succeeds, fails with an error that may not be repeated, or has no time left.
 *
 * @param call makes one attempt, which must end within the given ms
 * @param deadlineMs maximum time for all attempts and waits, in ms
 * @throws the error of the last attempt
 */
export async function repeated<Result>(
  call: (leftMs: number) => Promise<Result>,
  mayRepeat: (error: unknown) => boolean,
  deadlineMs: number,
): Promise<Result> {
  const deadline = new Deadline(deadlineMs);
  for (let attempt = 1; ; attempt++) {
    try {
      return await call(deadline.leftMs());
    } catch (error) {
      if (!mayRepeat(error) || !(await deadline.allows(waitMs(attempt, error)))) throw error;
    }
  }
}
