/**
 * A spin that happens once: one requestId for all attempts at it, until the service says that it did not happen.
 *
 *   send ─> 200                        done
 *        ─> no answer, KS-4110, 5xx    wait, same requestId: the answer is the original one
 *        ─> KS-5003, KS-5011, KS-5012  wait, new requestId: it did not happen
 *        ─> 429                        wait for Retry-After, same requestId
 *        ─> any other                  thrown: the same request fails again
 */
import { bodyOf, type PartnerApi, type Schemas } from './api.js';
import { UnknownSpinError } from './errors.js';
import { leavesInDoubt, pause, spinStepAfter, waitMs } from './retries.js';

export type NewSpin = Schemas['SpinBody'];
/** As it was answered, and the requestId that it happened under. */
export type Spin = Schemas['SpinResponse'] & { readonly requestId: string };

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

export interface SpinServices {
  readonly api: PartnerApi;
  /** Milliseconds for all attempts and waits. */
  readonly deadlineMs: number;
  newRequestId(): string;
}

/**
 * Spins once.
 * @throws SpindleError where the service refused it: it did not happen
 * @throws UnknownSpinError where it may have happened: the deadline has passed, or the signal was aborted
 */
export async function spinOnce(
  { api, deadlineMs, newRequestId }: SpinServices,
  spin: NewSpin,
  { onAttempt, signal }: SpinOptions,
): Promise<Spin> {
  const deadline = performance.now() + deadlineMs;
  let requestId = spin.requestId ?? newRequestId();
  // An attempt under this requestId may have happened, or be under way.
  let isInDoubt = false;
  let after: unknown;
  for (let attempt = 1; ; attempt++) {
    await onAttempt?.({ requestId, attempt, after });
    try {
      const body = { ...spin, requestId };
      const answer = await bodyOf(api.POST('/spin', { body, ...(signal && { signal }) }));
      return { ...(answer as Schemas['SpinResponse']), requestId };
    } catch (error) {
      after = error;
    }
    isInDoubt ||= leavesInDoubt(after) || signal?.aborted === true;
    const failure = (): unknown => (isInDoubt ? new UnknownSpinError(requestId, after) : after);
    const step = spinStepAfter(after);
    const wait = waitMs(attempt, after);
    if (step === 'give-up' || performance.now() + wait > deadline) throw failure();
    // A spin that may be under way keeps its requestId: with another one both could happen.
    if (step === 'new-id' && !isInDoubt) requestId = newRequestId();
    try {
      await pause(wait, signal);
    } catch {
      throw failure();
    }
  }
}
