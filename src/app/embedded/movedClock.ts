/**
 * Shifted clock for demonstrations of past days. A preloaded library shifts the clock of this process, and
 * the stores must use the same shifted clock.
 */

const NAMES = ['LD_PRELOAD', 'CLOCK_OFFSET_FILE'] as const;

/**
 * Returns the environment that makes child servers use the shifted clock; empty if the clock is not shifted.
 */
export function movedClock(): NodeJS.ProcessEnv {
  if (process.env.CLOCK_OFFSET_FILE === undefined) return {};
  return Object.fromEntries(NAMES.map((name) => [name, process.env[name]]));
}
