/**
 * Session settings that the statements of this service depend on. A role, a database and a server can change
 * the default of each setting (ALTER ROLE … SET), so each session sets them itself. A pooler shares sessions
 * between clients, so behind a pooler each transaction sets them. See PostgreSQL documentation, chapter 20,
 * "Server Configuration".
 */
import { type DurableSettings, ownCommit, settingsSql } from './postgresDurability.js';

/** Required values, as `current_setting` returns them. Settings that the server does not have are skipped. */
const SETTINGS: Readonly<Record<string, string>> = {
  // Output and input formats of dates, intervals, floats and bytes.
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  extra_float_digits: '1',
  bytea_output: 'hex',
  // Settings for the syntax of texts in statements and arrays.
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  // Transaction modes. Each transaction also states its isolation level.
  default_transaction_isolation: 'read committed',
  default_transaction_read_only: 'off',
  default_transaction_deferrable: 'off',
  // Timeouts that could end operations whose duration this service already limits.
  lock_timeout: '0',
  idle_session_timeout: '0',
  transaction_timeout: '0',
};

/** By setting: other values that are equivalent to the required value. */
const EQUIVALENTS: Readonly<Record<string, readonly string[]>> = {
  // The second part of DateStyle is the order of ambiguous dates, which no statement uses.
  DateStyle: ['ISO, DMY', 'ISO, YMD'],
  TimeZone: ['Etc/UTC', 'GMT', 'Etc/GMT', 'UCT', 'Etc/UCT', 'Zulu', 'Universal'],
};

/**
 * SQL for the search path. Keeps the inherited path if the tables are found by it, in whatever schema;
 * otherwise uses `public`, as for an empty database.
 */
const SEARCH_PATH = `CASE WHEN to_regclass('installation') IS NULL THEN 'public' ELSE current_setting('search_path') END`;

const VALUES = [
  ...Object.entries(SETTINGS).map(([name, value]) => {
    const same = [value, ...(EQUIVALENTS[name] ?? [])].map((each) => `"${each}"`).join(',');
    return `('${name}', '${value}', '{${same}}')`;
  }),
  `('search_path', ${SEARCH_PATH}, ARRAY[${SEARCH_PATH}]::text)`,
].join(', ');

const DIFFERENT = `FROM (VALUES ${VALUES}) AS wanted(name, value, same)
  WHERE current_setting(name, true) IS NOT NULL AND current_setting(name, true) <> ALL (same::text[])`;

/**
 * SQL that sets those settings that differ from the required values, and counts them.
 * @param isLocal whether the values apply to the transaction only
 */
const setSql = (isLocal: boolean): string => `SELECT count(set_config(name, value, ${isLocal})) ${DIFFERENT}`;

const IS_STANDBY = 'pg_is_in_recovery() AS is_standby';

/** Result of {@link SESSION_SQL} and {@link POOLED_SQL}. */
export interface FoundSettings extends DurableSettings {
  /** Number of settings that differ from the required values. */
  readonly different: bigint;
  readonly isStandby: boolean;
}

/**
 * SQL for a session that is not shared through a pooler. Later changes of the role's or server's settings do
 * not affect the session.
 */
export const SESSION_SQL = `${settingsSql(`set_config('synchronous_commit', ${ownCommit}, false)`)}, (${setSql(false)}) AS different, ${IS_STANDBY}`;

/**
 * SQL that checks the settings without setting them. Setting them would be useless, because the next
 * statement may run in another session of the pooler.
 */
export const POOLED_SQL = `${settingsSql("current_setting('synchronous_commit')")}, (SELECT count(*) ${DIFFERENT}) AS different, ${IS_STANDBY}`;

/** SQL for the start of a transaction behind a pooler. */
export const TRANSACTION_SQL = `SELECT set_config('synchronous_commit', ${ownCommit}, true), (${setSql(true)})`;
