/** The only reader of process.env: checks it and gives one frozen object. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { envSchema } from 'env-schema';
import type { Static } from '#typebox';
import { TrustedProxies } from '../domain/trustedProxies.js';
import { PROJECT_ROOT } from '../platform/projectRoot.js';
import { checkCron } from '../platform/runtime/cron.js';
import { type Constants, constantsWith } from './constants.js';
import { AllSettings, Environment, PRODUCTION_RANGES, REMOVED_SETTINGS } from './settings.js';

type Variables = Static<typeof AllSettings>;

export interface Config
  extends Readonly<
    Omit<
      Variables,
      'ROLES' | 'TRUST_PROXY' | 'ALLOW_VOLATILE_REDIS' | 'ALLOW_VOLATILE_POSTGRES' | 'TEST_CONSTANTS'
    >
  > {
  readonly roles: { readonly http: boolean; readonly worker: boolean };
  readonly allowVolatileRedis: boolean;
  readonly allowVolatilePostgres: boolean;
  readonly trustedProxies: TrustedProxies;
  /** What the outbox of a cell may hold. */
  readonly outboxMax: { readonly entries: number; readonly bytes: number };
  readonly constants: Constants;
  /** Settings of earlier versions that are set, and have no effect. */
  readonly withoutEffect: readonly string[];
  /** The folder of package.json, absolute. */
  readonly root: string;
  /** Absolute. */
  readonly dataDir: string;
  /** Where downloaded servers are kept, absolute. */
  readonly cacheDir: string;
  readonly migrationsDir: string;
  /** Built JavaScript of workers/. */
  readonly workersDir: string;
  /** Where the build puts the pages of /docs. */
  readonly docsDir: string;
  /** Of the program (package.json). */
  readonly version: string;
  readonly consoleDir: string;
  /** Where the build has put the verifier. */
  readonly verifyDir: string;
}

/** @throws Error with one line that says of each setting that is not valid what it may be. */
function readVariables(environment: NodeJS.ProcessEnv): Variables {
  try {
    return envSchema<Variables>({ schema: AllSettings, data: environment, env: false, dotenv: false });
  } catch (error) {
    const { errors } = error as { errors?: { instancePath: string; message?: string }[] };
    if (errors === undefined) throw error;
    // A choice has one error for each of its values and one for itself.
    const problems = new Map<string, string>();
    for (const { instancePath, message } of errors) {
      const name = instancePath.slice(1);
      const choices = choicesOf(name);
      problems.set(name, choices === undefined ? `${name} ${message}` : `${name} must be ${choices}`);
    }
    throw new Error([...problems.values()].join('; '));
  }
}

/** The values of a setting that has only a few. */
function choicesOf(name: string): string | undefined {
  const { anyOf } = (Environment.properties as Record<string, { anyOf?: { const?: unknown }[] }>)[name] ?? {};
  const values = anyOf?.map((each) => String(each.const));
  return values && [values.slice(0, -1).join(', '), ...values.slice(-1)].join(' or ');
}

/** Reads a setting whose form no schema says. @throws Error with one line that names it */
function setting<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${name} ${error instanceof Error ? error.message : error}`);
  }
}

/** @throws Error with one line that names each setting that no service with a database of its own takes */
function checkProductionRanges(given: Pick<Variables, keyof typeof PRODUCTION_RANGES>): void {
  const wrong = Object.entries(PRODUCTION_RANGES).flatMap(([name, { minimum, maximum }]) => {
    const value = given[name as keyof typeof PRODUCTION_RANGES];
    const isWithin = value >= minimum && value <= maximum;
    return isWithin ? [] : [`${name} must be ${minimum} to ${maximum} where DATABASE_URL is set`];
  });
  if (wrong.length > 0) throw new Error(wrong.join('; '));
}

/**
 * Reads the settings.
 * @throws Error with one line that names the setting, where one is not valid.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const variables = readVariables(environment);
  const { ROLES, ALLOW_VOLATILE_REDIS, ALLOW_VOLATILE_POSTGRES, TRUST_PROXY, TEST_CONSTANTS, ...rest } =
    variables;
  setting('env/SETTLEMENT_CRON', () => checkCron(rest.SETTLEMENT_CRON));
  if (rest.DATABASE_URL !== undefined && TEST_CONSTANTS === undefined) checkProductionRanges(rest);
  if (rest.IDEMPOTENCY_TTL_S < rest.REQUEST_ID_WINDOW_S)
    throw new Error('IDEMPOTENCY_TTL_S must be REQUEST_ID_WINDOW_S at least');
  const trustedProxies = setting('TRUST_PROXY', () => new TrustedProxies(TRUST_PROXY));
  const constants = setting('TEST_CONSTANTS', () => constantsWith(TEST_CONSTANTS));
  const root = PROJECT_ROOT;
  const roles = ROLES.split(',');
  return Object.freeze({
    ...rest,
    roles: Object.freeze({ http: roles.includes('http'), worker: roles.includes('worker') }),
    allowVolatileRedis: ALLOW_VOLATILE_REDIS === '1',
    allowVolatilePostgres: ALLOW_VOLATILE_POSTGRES === '1',
    trustedProxies,
    outboxMax: Object.freeze({
      entries: rest.OUTBOX_MAX_ENTRIES,
      bytes: rest.OUTBOX_MAX_ENTRIES * constants.outboxBytesPerEntry,
    }),
    constants,
    withoutEffect: Object.freeze(REMOVED_SETTINGS.filter((name) => environment[name] !== undefined)),
    version: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version as string,
    root,
    dataDir: resolve(rest.DATA_DIR),
    cacheDir: join(root, '.cache'),
    migrationsDir: join(root, 'src', 'postgres', 'migrations'),
    workersDir: join(root, 'dist', 'workers'),
    docsDir: join(root, 'dist', 'docs'),
    consoleDir: join(root, 'dist', 'console'),
    verifyDir: join(root, 'dist', 'verifier'),
  });
}
