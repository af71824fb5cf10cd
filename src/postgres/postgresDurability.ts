/**
 * Determines whether a server keeps the data that it has committed. Each session sets `synchronous_commit`
 * itself (sessionSettings.ts), unless a pooler shares the session. `fsync` and `full_page_writes` belong to
 * the server and may change while it runs (postgresPools.store.ts).
 */
import type { Sql } from './connection.js';
import { raw } from './statements.js';

const WEAK_COMMITS = ['off', 'local'];

/**
 * SQL for a value of `synchronous_commit` that is at least `on`. It replaces values with which a commit does
 * not wait for the disk or for the standbys, and keeps stronger values.
 */
export const ownCommit = `CASE WHEN current_setting('synchronous_commit') IN ('${WEAK_COMMITS.join("', '")}')
  THEN 'on' ELSE current_setting('synchronous_commit') END`;

/** SQL that reads the durability settings. An expression gives the value of `synchronous_commit`. */
export const settingsSql = (commit: string): string =>
  `SELECT ${commit} AS synchronous_commit, current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes`;

const SETTINGS_SQL = settingsSql("current_setting('synchronous_commit')");

export interface DurableSettings {
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
}

/** Lists the settings that risk committed data. Empty if the server keeps everything. */
const volatileOf = ({ fsync, fullPageWrites, synchronousCommit }: DurableSettings): string[] =>
  Object.entries({
    fsync,
    full_page_writes: fullPageWrites,
    synchronous_commit: synchronousCommit,
  }).flatMap(([name, value]) =>
    value === 'off' || WEAK_COMMITS.includes(value) ? [`${name} ${value}`] : [],
  );

/** Durability settings that the connections of a process have read. */
export class PostgresDurability {
  #volatile: readonly string[] = [];

  constructor(private readonly onChanged: (volatile: readonly string[]) => void) {}

  /** Durability settings that were read last. They still count while the server does not respond. */
  get volatile(): readonly string[] {
    return this.#volatile;
  }

  /**
   * Stores the settings that a new connection has read. If the server was restarted with other settings, this
   * process notices it before anything is written to the server.
   */
  note(settings: DurableSettings): void {
    const found = volatileOf(settings);
    if (found.join() === this.#volatile.join()) return;
    this.#volatile = found;
    this.onChanged(found);
  }

  async look(sql: Sql): Promise<void> {
    const [row] = await sql<DurableSettings[]>`${raw(SETTINGS_SQL)}`;
    this.note(row!);
  }
}

/** Thrown when the server may lose committed data. No data that would be acknowledged is written to it. */
export class VolatilePostgresError extends Error {
  constructor(volatile: readonly string[]) {
    super(`Postgres may lose committed writes: ${volatile.join('; ')}`);
  }
}

/**
 * Returns whether the role can see an asynchronous standby, which may lack committed data. One-off copies of
 * the database, such as those of pg_basebackup, don't count.
 */
export async function hasAsynchronousStandby(sql: Sql): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'async'
      AND application_name NOT IN ('pg_basebackup', 'pg_receivewal')`;
  return rows.length > 0;
}
