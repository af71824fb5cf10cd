/**
 * The settings of a session that the statements of this program depend on. A role, a database and a server can set each of them
 * (ALTER ROLE … SET), so each session sets them for itself. Behind a pooler a session is shared: there each transaction does.
 * PostgreSQL documentation, chapter 20, "Server Configuration".
 */
import { type DurableSettings, ownCommit, settingsSql } from './postgresDurability.js';

/** As `current_setting` shows them. Settings that the server does not know are left out. */
const SETTINGS: Readonly<Record<string, string>> = {
  // How dates, intervals, floats and bytes are written and read.
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  extra_float_digits: '1',
  bytea_output: 'hex',
  // How texts of statements and arrays are read.
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  // What a transaction is. Each names its isolation, too.
  default_transaction_isolation: 'read committed',
  default_transaction_read_only: 'off',
  default_transaction_deferrable: 'off',
  // Limits that would end what this program bounds by itself.
  lock_timeout: '0',
  idle_session_timeout: '0',
  transaction_timeout: '0',
};

/** Other values that mean the same. */
const EQUIVALENTS: Readonly<Record<string, readonly string[]>> = {
  // The order is that of ambiguous dates, which no statement has.
  DateStyle: ['ISO, DMY', 'ISO, YMD'],
  TimeZone: ['Etc/UTC', 'GMT', 'Etc/GMT', 'UCT', 'Etc/UCT', 'Zulu', 'Universal'],
};

/** The inherited path where it leads to the tables, whatever schema they are in; else `public`, as for a database that is empty. */
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

/** Sets what differs, and counts it. @param isLocal for the transaction only */
const setSql = (isLocal: boolean): string => `SELECT count(set_config(name, value, ${isLocal})) ${DIFFERENT}`;

/** What {@link SESSION_SQL} and {@link POOLED_SQL} find. */
export interface FoundSettings extends DurableSettings {
  /** So many settings differ from what this program depends on. */
  readonly different: bigint;
}

/** For a session of its own: a later change of the role's or server's settings does not reach it. */
export const SESSION_SQL = `${settingsSql(`set_config('synchronous_commit', ${ownCommit}, false)`)}, (${setSql(false)}) AS different`;

/** Looks only: the next statement may run in another session. */
export const POOLED_SQL = `${settingsSql("current_setting('synchronous_commit')")}, (SELECT count(*) ${DIFFERENT}) AS different`;

/** For a transaction behind a pooler. */
export const TRANSACTION_SQL = `SELECT set_config('synchronous_commit', ${ownCommit}, true), (${setSql(true)})`;
