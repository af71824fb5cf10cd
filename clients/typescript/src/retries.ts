/** When a call is repeated, and how long it waits before that. */
import { NoAnswerError, SpindleError } from './errors.js';

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;

/** Whether a spin may be repeated, always with its requestId; otherwise the same request fails again. */
export const maySpinAgain = (error: unknown): boolean =>
  error instanceof NoAnswerError || (error instanceof SpindleError && error.retry !== 'never');

/** Whether the spin may have happened, or may still happen, although this error came. */
export function leavesInDoubt(error: unknown): boolean {
  if (error instanceof NoAnswerError) return true;
  if (!(error instanceof SpindleError)) return false;
  // A 500 other than the spin's own says nothing of the spin.
  return error.retry === 'same-request-id' || (error.retry === 'later' && error.status === 500);
}

/** Whether a read may be repeated. */
export const mayReadAgain = (error: unknown): boolean =>
  error instanceof NoAnswerError || (error instanceof SpindleError && error.retry === 'later');

/** Whether an action of a round may be repeated: its `seq` has it happen once. */
export const mayActAgain = (error: unknown): boolean =>
  mayReadAgain(error) || (error instanceof SpindleError && error.retry === 'same-request-id');

/** Whether a write without a requestId may be repeated: only where it certainly changed nothing. */
export const mayWriteAgain = (error: unknown): boolean =>
  error instanceof SpindleError && error.status === 429;

/**
 * Milliseconds to wait before the next attempt: what `Retry-After` says at least, else longer with each attempt; at random, so
 * that callers that failed together do not come back together.
 * @param attempt 1 after the first
 */
export function waitMs(attempt: number, error: unknown): number {
  const asked = error instanceof SpindleError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  const backOff = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1));
  return Math.round(asked + backOff * (0.5 + Math.random() / 2));
}

/** @throws the signal's reason once it is aborted */
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
 * Calls again until it succeeds, may not be repeated, or the deadline would pass.
 * @param deadlineMs milliseconds for all attempts and waits
 * @throws the last attempt's error
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
