/** Figures that no operator can choose better, and that tests change (`TEST_CONSTANTS`). */

export interface Constants {
  /** From the begin of one ledger flush to that of the next at least; a long flush is followed by a longer rest. */
  readonly flushIntervalMs: number;
  /** How often the process that reads the catalog for all asks Postgres for changes. */
  readonly catalogPollMs: number;
  /** Longest wait for Postgres once a key is known to be revoked; then requests are refused until the change is read. */
  readonly restrictionReadMs: number;
  /** How often the settlement job looks for days that are due. */
  readonly settlementTurnMs: number;
  /** How often what is played is counted by hour. */
  readonly trafficTurnMs: number;
  /** Games of a worker with metrics of their own. */
  readonly metricsGamesMax: number;
  /** Of the outbox, for each of the OUTBOX_MAX_ENTRIES: twice what an entry takes whose names are UUIDs. Of longer ones fewer fit. */
  readonly outboxBytesPerEntry: number;
  /** From a start to the check of the installed packages: at most a minute, when the rush of a start is over. */
  readonly packagesCheckMs: number;
}

const CONSTANTS: Constants = {
  flushIntervalMs: 100,
  catalogPollMs: 400,
  restrictionReadMs: 600,
  settlementTurnMs: 60_000,
  trafficTurnMs: 60_000,
  metricsGamesMax: 100,
  outboxBytesPerEntry: 256,
  packagesCheckMs: 30_000,
};

/**
 * @param changed JSON of those that a test changes
 * @throws Error where one is unknown or no number
 */
export function constantsWith(changed = '{}'): Constants {
  const given = Object.entries(JSON.parse(changed));
  const unknown = given.find(([name, value]) => !(name in CONSTANTS) || typeof value !== 'number');
  if (unknown !== undefined) throw new Error(`must not have ${unknown.join(' = ')}`);
  return Object.freeze({ ...CONSTANTS, ...Object.fromEntries(given) });
}
