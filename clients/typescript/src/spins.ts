/**
 * A spin or a deal that happens once: all attempts at it have one requestId, whatever the service answers. Whoever stored that
 * requestId can always learn the result with it.
 *
 *   send ─> 200                        done
 *        ─> no answer, KS-4110, 5xx    wait, same requestId: the answer is the original one
 *        ─> KS-5003, KS-5011, KS-5012  wait, same requestId: it did not happen, and these codes bind nothing
 *        ─> 429                        wait for Retry-After, same requestId
 *        ─> any other                  thrown: the same request fails again
 */
import type { PlaySchemas, Schemas } from './api.js';
import { UnknownSpinError } from './errors.js';
import { leavesInDoubt, maySpinAgain, pause, waitMs } from './retries.js';

export type NewSpin = Schemas['SpinBody'];
/** A spin as it was answered, with its requestId: the given one, or the one that the client made. */
export type Spin = Schemas['SpinResponse'] & { readonly requestId: string };

export type NewDeal = PlaySchemas['DealBody'];
/** A round as it was answered. */
export type Round = PlaySchemas['RoundResponse'];

/** What an attempt is made with. */
export interface SpinAttempt {
  readonly requestId: string;
  /** From 1. */
  readonly attempt: number;
  /** Why the attempt before failed. */
  readonly after: unknown;
}

export interface SpinOptions {
  /** Called, and waited for, before each attempt: the place to store the requestId. */
  readonly onAttempt?: (attempt: SpinAttempt) => Promise<void> | void;
  readonly signal?: AbortSignal;
}

export interface OnceServices {
  /** Milliseconds for all attempts and waits. */
  readonly deadlineMs: number;
  newRequestId(): string;
}

/** What is sent once, however often that takes. */
export interface Once<Answer> {
  /** Absent: one is made. */
  readonly requestId: string | undefined;
  send(requestId: string, signal: AbortSignal | undefined): Promise<Answer>;
}

/**
 * Has it happen once.
 * @returns the answer, and the requestId of all attempts
 * @throws SpindleError where the service refused it: it did not happen
 * @throws UnknownSpinError where it may have happened: the deadline has passed, or the signal was aborted
 */
export async function once<Answer>(
  { deadlineMs, newRequestId }: OnceServices,
  { requestId: given, send }: Once<Answer>,
  { onAttempt, signal }: SpinOptions,
): Promise<{ answer: Answer; requestId: string }> {
  const deadline = performance.now() + deadlineMs;
  const requestId = given ?? newRequestId();
  // An attempt under this requestId may have happened, or be under way.
  let isInDoubt = false;
  let after: unknown;
  for (let attempt = 1; ; attempt++) {
    await onAttempt?.({ requestId, attempt, after });
    try {
      return { answer: await send(requestId, signal), requestId };
    } catch (error) {
      after = error;
    }
    isInDoubt ||= leavesInDoubt(after) || signal?.aborted === true;
    const failure = (): unknown => (isInDoubt ? new UnknownSpinError(requestId, after) : after);
    const wait = waitMs(attempt, after);
    if (!maySpinAgain(after) || performance.now() + wait > deadline) throw failure();
    try {
      await pause(wait, signal);
    } catch {
      throw failure();
    }
  }
}
