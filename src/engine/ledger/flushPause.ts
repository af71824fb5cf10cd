/**
 * Calculates the pause after each round of the flusher, which waits for entries and flushes them. During a
 * pause, more rows gather for the next transaction. They share its fixed costs: round trips, a disk sync, and
 * the totals of games.
 */

/**
 * Pause as a multiple of the duration of a flush. With longer pauses after longer flushes, many busy cells
 * are flushed about every 0.4 s.
 */
const PAUSE_SHARE = 2;
const PAUSE_MAX_MS = 250;
/**
 * Additional pause for each game of a flush, in ms. Each game has rows of totals to write, whatever its
 * number of spins.
 */
const PAUSE_MS_A_GAME = 0.25;
/**
 * Pause as a fraction of the flush time, while responses wait for the commit. A client that gets its response
 * sends its next spin at once. After the pause, these spins share a transaction with the spins that arrived
 * during the flush. Without the pause, two groups of clients would take turns permanently, each with
 * transactions of its own.
 */
const AWAITED_PAUSE_SHARE = 0.5;
const AWAITED_PAUSE_MAX_MS = 10;

export interface FlushRound {
  /** Whether responses wait for the commit of this flush. */
  readonly isAwaited: boolean;
  /** Duration of the whole round, including the wait for entries, in ms. */
  readonly roundMs: number;
  /** Duration of the flush without the wait for entries, in ms. */
  readonly flushMs: number;
  /** Number of games whose totals were written in the round. */
  readonly games: number;
}

/**
 * Returns the pause before the next round, in ms, 0 or more.
 * @param intervalMs time from the start of one round to the start of the next, if no response waits
 */
export function pauseMs({ isAwaited, roundMs, flushMs, games }: FlushRound, intervalMs: number): number {
  if (isAwaited) return Math.min(AWAITED_PAUSE_SHARE * flushMs, AWAITED_PAUSE_MAX_MS);
  const longPause = Math.max(PAUSE_SHARE * flushMs, PAUSE_MS_A_GAME * games);
  return Math.max(0, intervalMs - roundMs, Math.min(longPause, PAUSE_MAX_MS));
}
