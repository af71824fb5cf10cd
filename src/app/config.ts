/** Reads and checks the settings and returns one frozen object. No other code reads process.env. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Static } from '#typebox';
import { Compile, type Validator } from '#typebox/compile';
import { TrustedProxies } from '../domain/trustedProxies.js';
import { schemaFaults } from '../domain/validation.js';
import { PROJECT_ROOT } from '../platform/projectRoot.js';
import { checkCron } from '../platform/runtime/cron.js';
import { type Constants, constantsWith } from './constants.js';
import { type ProcessPlan, planProcesses } from './processPlan.js';
import { AllSettings, Environment, PRODUCTION_RANGES, REMOVED_SETTINGS } from './settings.js';

type Variables = Static<typeof AllSettings>;

export interface Config
  extends Readonly<
    Omit<
      Variables,
      | 'ROLES'
      | 'FRONT_ENDS'
      | 'FRONT_END_NAME'
      | 'TRUST_PROXY'
      | 'ALLOW_VOLATILE_REDIS'
      | 'ALLOW_VOLATILE_POSTGRES'
      | 'TEST_CONSTANTS'
    >
  > {
  readonly roles: ProcessPlan['roles'];
  readonly processes: ProcessPlan;
  readonly allowVolatileRedis: boolean;
  readonly allowVolatilePostgres: boolean;
  readonly trustedProxies: TrustedProxies;
  readonly outboxMax: { readonly entries: number; readonly bytes: number };
  readonly constants: Constants;
  /** Settings of earlier versions that are set but have no effect. */
  readonly withoutEffect: readonly string[];
  /** Absolute path of the folder of package.json. */
  readonly root: string;
  /** Absolute path of DATA_DIR. */
  readonly dataDir: string;
  /** Absolute path of the folder for downloaded servers. */
  readonly cacheDir: string;
  readonly migrationsDir: string;
  /** Folder of the built JavaScript of workers/. */
  readonly workersDir: string;
  /** Folder of the built pages of /docs. */
  readonly docsDir: string;
  readonly version: string;
  readonly consoleDir: string;
  readonly verifyDir: string;
}

interface Property {
  readonly type?: string;
  readonly default?: unknown;
  readonly anyOf?: readonly { readonly const?: unknown }[];
}

const VALIDATOR = Compile(AllSettings) as Validator;
const PROPERTIES: Readonly<Record<string, Property>> = AllSettings.properties;
const TEXTS = Object.keys(Environment.properties).filter((name) => PROPERTIES[name]!.type === 'string');

/**
 * Refuses texts that begin or end with whitespace. They come from files with a line break at the end, and a
 * key or an address with a line break never works.
 * @throws Error with one line that names each such setting, without its value
 */
function checkEnds(environment: NodeJS.ProcessEnv): void {
  const wrong = TEXTS.flatMap((name) => {
    const value = environment[name] ?? '';
    if (value.trim() === value) return [];
    const what = /^[\r\n]|[\r\n]$/.test(value) ? 'a line break' : 'a space';
    return [`${name} begins or ends with ${what}. Remove the whitespace around its value`];
  });
  if (wrong.length > 0) throw new Error(wrong.join('; '));
}

function readVariables(environment: NodeJS.ProcessEnv): Variables {
  checkEnds(environment);
  const variables = Object.fromEntries(
    Object.entries(PROPERTIES).flatMap(([name, { type, default: byDefault }]) => {
      const text = environment[name];
      const value = text === undefined ? byDefault : type === 'integer' ? numberOf(text) : text;
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const found = schemaFaults(VALIDATOR, variables);
  if (found === undefined) return variables as Variables;
  const problems = found.faults.map(({ path, message }) => {
    const name = path.slice(1);
    const choices = choicesOf(name);
    return choices === undefined ? `${name} ${message}` : `${name} must be ${choices}`;
  });
  throw new Error(problems.join('; '));
}

/** Returns a text that is no number unchanged, so that the schema refuses it. */
const numberOf = (text: string): number | string =>
  text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text);

/** Returns the allowed values of a setting with a fixed set of values, or undefined. */
function choicesOf(name: string): string | undefined {
  const values = PROPERTIES[name]?.anyOf?.map((each) => String(each.const));
  return values && [values.slice(0, -1).join(', '), ...values.slice(-1)].join(' or ');
}

/** Reads a setting whose format the schema can't express. */
function setting<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${name} ${error instanceof Error ? error.message : error}`);
  }
}

/** Checks the ranges that apply with an external database. */
function checkProductionRanges(given: Pick<Variables, keyof typeof PRODUCTION_RANGES>): void {
  const wrong = Object.entries(PRODUCTION_RANGES).flatMap(([name, { minimum, maximum }]) => {
    const value = given[name as keyof typeof PRODUCTION_RANGES];
    const isWithin = value >= minimum && value <= maximum;
    return isWithin ? [] : [`${name} must be ${minimum} to ${maximum} if DATABASE_URL is set`];
  });
  if (wrong.length > 0) throw new Error(wrong.join('; '));
}

/** @throws Error with one line that names each invalid setting */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const variables = readVariables(environment);
  const { ROLES, FRONT_ENDS, FRONT_END_NAME, TRUST_PROXY, TEST_CONSTANTS, ...others } = variables;
  const { ALLOW_VOLATILE_REDIS, ALLOW_VOLATILE_POSTGRES, ...rest } = others;
  setting('env/SETTLEMENT_CRON', () => checkCron(rest.SETTLEMENT_CRON));
  if (rest.DATABASE_URL !== undefined && TEST_CONSTANTS === undefined) checkProductionRanges(rest);
  if (rest.IDEMPOTENCY_TTL_S < rest.REQUEST_ID_WINDOW_S)
    throw new Error('IDEMPOTENCY_TTL_S must not be less than REQUEST_ID_WINDOW_S');
  const trustedProxies = setting('TRUST_PROXY', () => new TrustedProxies(TRUST_PROXY));
  const constants = setting('TEST_CONSTANTS', () => constantsWith(TEST_CONSTANTS));
  const root = PROJECT_ROOT;
  const processes = setting('FRONT_ENDS', () => planProcesses(ROLES.split(','), FRONT_ENDS, FRONT_END_NAME));
  return Object.freeze({
    ...rest,
    roles: processes.roles,
    processes,
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
