/**
 * Calculates the pause after each flush round. A pause gathers more rows for the next transaction, which
 * share its fixed costs: round trips, a disk sync, and the totals of games.
 */

/** A long round is followed by a longer pause, so many busy cells are flushed about every 0.4 s. */
const PAUSE_SHARE = 2;
const PAUSE_MAX_MS = 250;
/**
 * A round with many games is followed by a longer pause, because each game has rows of totals, whatever its
 * number of spins.
 */
const PAUSE_MS_A_GAME = 0.25;
/**
 * Share of the flush time to pause while answers wait for the commit. An answered client sends its next spin
 * at once. After the pause, those spins share a transaction with the ones that arrived during the flush;
 * without it, two groups of clients would take turns for ever.
 */
const AWAITED_PAUSE_SHARE = 0.5;
const AWAITED_PAUSE_MAX_MS = 10;

export interface FlushRound {
  /** Whether answers wait for the commit of this flush. */
  readonly isAwaited: boolean;
  /** Duration of the whole round, including the wait for entries, in ms. */
  readonly roundMs: number;
  /** Duration of the flush without the wait for entries, in ms. */
  readonly flushMs: number;
  /** Number of games whose totals the round wrote. */
  readonly games: number;
}

/**
 * Returns the pause before the next round, in ms, 0 or more. @param intervalMs time from the start of one
 * round to the start of the next while no answer waits
 */
export function pauseMs({ isAwaited, roundMs, flushMs, games }: FlushRound, intervalMs: number): number {
  if (isAwaited) return Math.min(AWAITED_PAUSE_SHARE * flushMs, AWAITED_PAUSE_MAX_MS);
  const longPause = Math.max(PAUSE_SHARE * flushMs, PAUSE_MS_A_GAME * games);
  return Math.max(0, intervalMs - roundMs, Math.min(longPause, PAUSE_MAX_MS));
}
