/** Constants that no operator could choose better. Tests change them with `TEST_CONSTANTS`. */

export interface Constants {
  /**
   * Minimum time between the starts of two ledger flushes, in ms. A long flush is followed by a longer pause.
   */
  readonly flushIntervalMs: number;
  /** Poll interval of the catalog, in ms. One process reads the catalog for all processes. */
  readonly catalogPollMs: number;
  /**
   * Maximum wait for Postgres after the announcement of a revoked key, in ms. After that, requests are
   * refused until the change is read.
   */
  readonly restrictionReadMs: number;
  /** Interval at which the settlement job looks for due days, in ms. */
  readonly settlementTurnMs: number;
  /** Interval at which the spins, wagers and payouts of each hour are summed up, in ms. */
  readonly trafficTurnMs: number;
  /** Maximum number of games of a worker with their own time series in the metrics. */
  readonly metricsGamesMax: number;
  /** Number of failed authentications per minute from one address before KS-4293 (docs/contract.md §4). */
  readonly authFailureLimit: number;
  readonly consoleSessionMinutes: number;
  /**
   * Timeout of a connection without a request with `HTTP_SERVER=node`, in seconds; uWebSockets.js takes 10 to
   * 12.
   */
  readonly idleTimeoutS: number;
  /**
   * Minimum time between the announced end of an API version and its sunset, in days. Null means six calendar
   * months.
   */
  readonly apiNoticeDays: number | null;
  /**
   * Maximum number of webhook attempts to one host per minute, over all webhooks of all partners. Attempts
   * for one partner make up at most half of this number.
   */
  readonly webhookHostAttemptsMax: number;
  /**
   * Waits after the first to fourth failed attempt of a webhook delivery, in ms; the last value repeats
   * (docs/contract.md §13.2).
   */
  readonly webhookRetryDelaysMs: readonly number[];
  /**
   * Maximum time that a sealed block waits for its append to the public log, in ms. It counts from the first
   * waiting block.
   */
  readonly logBatchMs: number;
  /** Minimum interval between two rounds in which the witnesses are asked to cosign, in ms. */
  readonly logCosignMs: number;
  /**
   * Bytes of outbox capacity per entry of OUTBOX_MAX_ENTRIES: twice the size of an entry with UUID names.
   * Fewer entries with longer names fit.
   */
  readonly outboxBytesPerEntry: number;
  /**
   * Delay between the start of a process and its check of the installed packages, in ms: at most a minute,
   * after the peak load of the start.
   */
  readonly packagesCheckMs: number;
}

/**
 * Time of the daily program check of each process, and of the daily audit log record in the public log: a
 * cron expression with five fields, UTC.
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
  webhookHostAttemptsMax: 30_000,
  webhookRetryDelaysMs: [60_000, 300_000, 900_000, 3_600_000],
  logBatchMs: 50,
  logCosignMs: 1000,
  outboxBytesPerEntry: 256,
  packagesCheckMs: 30_000,
};

/**
 * @param changed JSON object of the constants that a test changes
 * @throws Error for an unknown constant or a value of the wrong type
 */
export function constantsWith(changed = '{}'): Constants {
  const given = Object.entries(JSON.parse(changed));
  const isList = (name: string): boolean => Array.isArray(CONSTANTS[name as keyof Constants]);
  const isNumber = (value: unknown): boolean => typeof value === 'number';
  const isRight = (name: string, value: unknown): boolean =>
    isList(name) ? Array.isArray(value) && value.every(isNumber) : isNumber(value);
  const unknown = given.find(([name, value]) => !(name in CONSTANTS) || !isRight(name, value));
  if (unknown !== undefined) throw new Error(`contains the unknown or invalid value ${unknown.join(' = ')}`);
  return Object.freeze({ ...CONSTANTS, ...Object.fromEntries(given) });
}
