/**
 * Executes a spin or deal exactly once: all attempts use the same requestId, regardless of the service's
 * answers. A caller that stored the requestId can always get the result with it.
 * The error catalogue says of each answer whether it can change (`retry`) and whether the spin may have
 * happened (`happened`).
 */
import type { PlaySchemas, Schemas } from './api.js';
import { UnknownSpinError } from './errors.js';
import { Deadline, leavesInDoubt, maySpinAgain, waitMs } from './retries.js';

export type NewSpin = Schemas['SpinBody'];
/** The answer to a spin with its requestId, which was given by the caller or created by the client. */
export type Spin = Schemas['SpinResponse'] & { readonly requestId: string };

export type NewDeal = PlaySchemas['DealBody'];
/** The answer to a deal or an action of a round. */
export type Round = PlaySchemas['RoundResponse'];

/** Information about an attempt that is about to be made. */
export interface SpinAttempt {
  readonly requestId: string;
  /** Number of the attempt, counted from 1. */
  readonly attempt: number;
  /** Error of the previous attempt; undefined before the first attempt. */
  readonly after: unknown;
}

export interface SpinOptions {
  /** Called and awaited before each attempt. Store the requestId here. */
  readonly onAttempt?: (attempt: SpinAttempt) => Promise<void> | void;
  readonly signal?: AbortSignal;
}

export interface OnceServices {
  /** Maximum time for all attempts and waits, in ms. */
  readonly deadlineMs: number;
  newRequestId(): string;
}

/** A request that must take effect exactly once, even if it is sent several times. */
export interface Once<Answer> {
  /** The caller's requestId. Undefined: the client creates a requestId. */
  readonly requestId: string | undefined;
  /** Makes one attempt, which must end within `leftMs` ms. */
  send(requestId: string, leftMs: number, signal: AbortSignal | undefined): Promise<Answer>;
}

/**
 * Executes a request exactly once.
 *
 * @returns the answer, and the requestId of all attempts
 * @throws SpindleError if the service refused the request; it did not happen
 * @throws UnknownSpinError if the request may have happened, and the deadline has passed or the signal was
 * aborted
 */
export async function once<Answer>(
  { deadlineMs, newRequestId }: OnceServices,
  { requestId: given, send }: Once<Answer>,
  { onAttempt, signal }: SpinOptions,
): Promise<{ answer: Answer; requestId: string }> {
  const deadline = new Deadline(deadlineMs);
  const requestId = given ?? newRequestId();
  // True if an earlier attempt with this requestId may have happened or may still be running.
  let isInDoubt = false;
  let after: unknown;
  for (let attempt = 1; ; attempt++) {
    await onAttempt?.({ requestId, attempt, after });
    try {
      return { answer: await send(requestId, deadline.leftMs(), signal), requestId };
    } catch (error) {
      after = error;
    }
    isInDoubt ||= leavesInDoubt(after) || signal?.aborted === true;
    const failure = (): unknown => (isInDoubt ? new UnknownSpinError(requestId, after) : after);
    if (!maySpinAgain(after)) throw failure();
    const mayRepeat = await deadline.allows(waitMs(attempt, after), signal).catch(() => false);
    if (!mayRepeat) throw failure();
  }
}
