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
  /** Failed authentications in a minute from one address before KS-4293 (docs/contract.md §4). */
  readonly authFailureLimit: number;
  /** Minutes after which a session of the console ends. */
  readonly consoleSessionMinutes: number;
  /** With `HTTP_SERVER=node`: seconds after which a connection without a request is closed; uWebSockets.js takes 10 to 12. */
  readonly idleTimeoutS: number;
  /** Shortest time from the announcement that an API version ends to its sunset, in days. Null: six calendar months. */
  readonly apiNoticeDays: number | null;
  /** Webhook attempts to one host in a minute, over all webhooks of all partners; half of them of one partner. */
  readonly webhookHostAttemptsMax: number;
  /** Waits after the first to fourth failed attempt of a webhook delivery, in ms; the last value repeats (docs/contract.md §13.2). */
  readonly webhookRetryDelaysMs: readonly number[];
  /** From the first block that waits for the public log to the append, in ms. */
  readonly logBatchMs: number;
  /** Shortest interval between two rounds in which the witnesses are asked to cosign, in ms. */
  readonly logCosignMs: number;
  /** Bytes of the outbox for each of the OUTBOX_MAX_ENTRIES: twice the size of an entry whose names are UUIDs. Of longer ones fewer fit. */
  readonly outboxBytesPerEntry: number;
  /** From a start to the check of the installed packages: at most a minute, when the rush of a start is over. */
  readonly packagesCheckMs: number;
}

/**
 * When each process compares its files with the list of its build, and when the public log gets the newest entry of the audit log: a cron
 * expression of five fields, UTC.
 */
export const PROGRAM_CHECK_CRON = '30 3 * * *';

const CONSTANTS: Constants = {
  flushIntervalMs: 100,
  catalogPollMs: 400,
  restrictionReadMs: 600,
  settlementTurnMs: 60_000,
  trafficTurnMs: 60_000,
  metricsGamesMax: 100,
  authFailureLimit: 60,
  consoleSessionMinutes: 480,
  idleTimeoutS: 75,
  apiNoticeDays: null,
  webhookHostAttemptsMax: 6000,
  webhookRetryDelaysMs: [60_000, 300_000, 900_000, 3_600_000],
  logBatchMs: 50,
  logCosignMs: 1000,
  outboxBytesPerEntry: 256,
  packagesCheckMs: 30_000,
};

/**
 * @param changed JSON of those that a test changes
 * @throws Error where one is unknown or has a value of another type
 */
export function constantsWith(changed = '{}'): Constants {
  const given = Object.entries(JSON.parse(changed));
  const isList = (name: string): boolean => Array.isArray(CONSTANTS[name as keyof Constants]);
  const isNumber = (value: unknown): boolean => typeof value === 'number';
  const isRight = (name: string, value: unknown): boolean =>
    isList(name) ? Array.isArray(value) && value.every(isNumber) : isNumber(value);
  const unknown = given.find(([name, value]) => !(name in CONSTANTS) || !isRight(name, value));
  if (unknown !== undefined) throw new Error(`must not have ${unknown.join(' = ')}`);
  return Object.freeze({ ...CONSTANTS, ...Object.fromEntries(given) });
}
