/** The clock of a demonstration of past days, which a preloaded library moves: the stores must see the same one. */

const NAMES = ['LD_PRELOAD', 'CLOCK_OFFSET_FILE'] as const;

/** What has the servers that this process starts read the moved clock; nothing where none is moved. */
export function movedClock(): NodeJS.ProcessEnv {
  if (process.env.CLOCK_OFFSET_FILE === undefined) return {};
  return Object.fromEntries(NAMES.map((name) => [name, process.env[name]]));
}
