/** Decides whether a call is repeated, and how long to wait before the next attempt. */
import { NoAnswerError, SpindleError } from './errors.js';

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;

/**
 * Returns whether a spin may be repeated with the same requestId. If not, the same request would fail again.
 */
export const maySpinAgain = (error: unknown): boolean =>
  error instanceof NoAnswerError || (error instanceof SpindleError && error.retry !== 'never');

/** Returns whether the spin may have happened, or may still happen, despite this error. */
export function leavesInDoubt(error: unknown): boolean {
  if (error instanceof NoAnswerError) return true;
  if (!(error instanceof SpindleError)) return false;
  // A status 500 that is not an error of the spin itself does not reveal whether the spin happened.
  return error.retry === 'same-request-id' || (error.retry === 'later' && error.status === 500);
}

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
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
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

/**
 * Repeats a call until it succeeds, fails with an error that may not be repeated, or would exceed the
 * deadline.
 *
 * @param deadlineMs maximum time for all attempts and waits, in ms
 * @throws the error of the last attempt
 */
export async function repeated<Result>(
  call: () => Promise<Result>,
  mayRepeat: (error: unknown) => boolean,
  deadlineMs: number,
): Promise<Result> {
  const deadline = performance.now() + deadlineMs;
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const wait = waitMs(attempt, error);
      if (!mayRepeat(error) || performance.now() + wait > deadline) throw error;
      await pause(wait);
    }
  }
}
