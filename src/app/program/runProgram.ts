/** Runs the service as a program: settings, log, signals and exit status. */

import { setFlagsFromString } from 'node:v8';
import type { Logger } from 'pino';
import { seedsOf } from '../../domain/storeUrl.js';
import { addressOf, lineOf, spellings, withoutSecrets } from '../../platform/secretsInLogs.js';
import { migrate } from '../../postgres/migrate.js';
import { type Config, readConfig } from '../config.js';
import { SetupError } from '../embedded/index.js';
import { openLogger } from '../logger.js';
import { bannerOf } from './banner.js';
import { tellParent } from './parentProcess.js';
import type { Running } from './running.js';
import { stopOnSignals } from './signals.js';

/**
 * Time limit of a stop in ms, in addition to the front end's grace period. After that, the process exits
 * without finishing.
 */
const STOP_TIMEOUT_MS = 5000;

/** Returns the time limit of the stop of one process, in ms, without the front ends that it has started. */
const stopTimeoutMs = ({ SHUTDOWN_GRACE_S }: Config): number => STOP_TIMEOUT_MS + SHUTDOWN_GRACE_S * 1000;

/** Returns the time after which a stopping front end is killed, in ms. */
export const frontEndStopMs = (config: Config): number => stopTimeoutMs(config) + 1000;

/**
 * Growth of the old generation, in percent, before a full garbage collection. By default V8 lets a heap of
 * this size grow by 8 MB, which at full load means one collection per second and 4 % of a spin's CPU time.
 */
const HEAP_GROWS_BY = 50;

/** Interval at which a stop reports what it waits for, in ms. */
const SAID_EVERY_MS = 1500;

export type Start = (config: Config, log: Logger, progress: (line: string) => void) => Promise<Running>;

/**
 * Runs the service until a signal or an uncaught error; with --migrate, until the schema is up to date. A
 * failed start ends the process with status 1 and one line.
 */
export async function runProgram(start: Start): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWS_BY}`);
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    process.stderr.write(`spindle: ${lineOf(error)}\n`);
    process.exit(1);
  }
  const secrets = secretsOf(config);
  const log = openLogger({ level: config.LOG_LEVEL, secrets });
  const { isChild, children } = config.processes;
  const print = (line: string): void => void process.stderr.write(`${withoutSecrets(line, secrets)}\n`);
  const progress = isChild ? (): void => {} : print;
  let running: Running | undefined;
  stopOnSignals({
    // Front ends that this process has started end before its own services.
    stopTimeoutMs: stopTimeoutMs(config) + (children.length > 0 ? frontEndStopMs(config) : 0),
    endsWithParent: isChild,
    // An interrupted start has nothing to finish, because its servers end with this process.
    stop: async () => running && stopAloud(running, progress),
    onUncaughtError: (error) => log.fatal({ err: error }, 'uncaught error'),
    onStopFailed: (error) => log.fatal({ err: error }, 'stop failed'),
  });
  try {
    if (process.argv.includes('--migrate')) {
      await migrateOnly(config, progress);
      process.exit(0);
    }
    running = await start(config, log, progress);
  } catch (error) {
    if (!(error instanceof SetupError)) log.fatal({ err: error }, 'start failed');
    if (isChild) await tellParent({ kind: 'failed', problem: lineOf(error) });
    else print(`spindle: ${lineOf(error)}`);
    process.exit(1);
  }
  if (isChild) await tellParent({ kind: 'ready' });
  else process.stdout.write(bannerOf(config, running));
}

/** Stops the service and reports what the stop waits for if it takes long. */
async function stopAloud(running: Running, progress: (line: string) => void): Promise<void> {
  const saying = setInterval(() => {
    const names = running.waitsFor();
    if (names.length > 0) progress(`Stopping: waiting for ${names.join(', ')} …`);
  }, SAID_EVERY_MS);
  try {
    await running.stop();
  } finally {
    clearInterval(saying);
  }
}

/**
 * Updates the database schema, for a job that runs before the service processes.
 * @throws SetupError with one line if no address is configured or Postgres can't be reached
 */
async function migrateOnly(config: Config, progress: (line: string) => void): Promise<void> {
  const url = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
  if (url === undefined)
    throw new SetupError('--migrate needs DATABASE_URL. Set it to the database to migrate.');
  try {
    await migrate(url, config.migrationsDir, () => {});
  } catch (error) {
    throw new SetupError(`The schema of Postgres at ${addressOf(url)} was not changed: ${lineOf(error)}`);
  }
  progress('The schema is up to date');
}

/**
 * Collects the secrets in the settings of this process, which must not appear in a log line. Secrets that the
 * service issues are not collected, because the log recognizes them by their format.
 */
function secretsOf({
  REDIS_URL,
  DATABASE_URL,
  DATABASE_DIRECT_URL,
  SMTP_URL,
  OPERATOR_API_KEY,
  ...config
}: Config): string[] {
  const urls = [REDIS_URL, DATABASE_URL, DATABASE_DIRECT_URL, SMTP_URL].flatMap((url = '') => seedsOf(url));
  const passwords = urls.map((url) => (URL.canParse(url) ? new URL(url).password : undefined));
  const listed = (keys = ''): string[] => keys.split(',').filter((key) => key !== '');
  return spellings([
    ...passwords,
    OPERATOR_API_KEY,
    ...listed(config.WEBHOOK_SECRETS_KEY),
    ...listed(config.SEEDS_KEY),
    ...listed(config.LOG_KEY),
  ]);
}
