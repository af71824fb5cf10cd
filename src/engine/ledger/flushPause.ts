/**
 * How long a flusher pauses after a round. What a transaction costs beside its rows (round trips, a sync, totals of games) is
 * then paid by more of them.
 */

/** A round that took long is followed by a longer pause: many busy cells are flushed every 0.4 s or so. */
const PAUSE_SHARE = 2;
const PAUSE_MAX_MS = 250;
/** So is one of many games: each has rows of totals, however many of its spins they are for. */
const PAUSE_MS_A_GAME = 0.25;
/**
 * While somebody waits for what is booked. Whoever is answered sends the next spin at once: after the pause those spins go into one
 * transaction with those that came meanwhile, where two halves would otherwise take turns for ever.
 */
const AWAITED_PAUSE_SHARE = 0.5;
const AWAITED_PAUSE_MAX_MS = 10;

export interface FlushRound {
  /** Somebody waits for what is booked. */
  readonly isAwaited: boolean;
  /** The whole round, with the wait for what there is to book. */
  readonly roundMs: number;
  /** What it took to book. */
  readonly flushMs: number;
  /** Games whose totals it wrote. */
  readonly games: number;
}

/** @param intervalMs from the begin of one round to that of the next, where nobody waits @returns milliseconds from 0 */
export function pauseMs({ isAwaited, roundMs, flushMs, games }: FlushRound, intervalMs: number): number {
  if (isAwaited) return Math.min(AWAITED_PAUSE_SHARE * flushMs, AWAITED_PAUSE_MAX_MS);
  const longPause = Math.max(PAUSE_SHARE * flushMs, PAUSE_MS_A_GAME * games);
  return Math.max(0, intervalMs - roundMs, Math.min(longPause, PAUSE_MAX_MS));
}
