/**
 * Postgres settings of a role or database that contradict the assumptions of the service's SQL statements.
 */
export const HOSTILE_SETTINGS = [
  `datestyle = 'German, DMY'`,
  `intervalstyle = 'sql_standard'`,
  `timezone = 'Asia/Kolkata'`,
  `extra_float_digits = -15`,
  `bytea_output = 'escape'`,
  `standard_conforming_strings = off`,
  `array_nulls = off`,
  `default_transaction_isolation = 'serializable'`,
  `default_transaction_read_only = on`,
  `default_transaction_deferrable = on`,
  `search_path = 'nowhere'`,
  `lock_timeout = '1ms'`,
  `synchronous_commit = off`,
];
