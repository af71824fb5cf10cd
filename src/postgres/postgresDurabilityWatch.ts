/** Watches whether Postgres has settings that risk committed data. */
import { PeriodicService } from '../platform/runtime/periodicService.js';
import type { Sql } from './connection.js';
import { type DurableSettings, type PostgresDurability, SETTINGS_SQL } from './postgresDurability.js';
import { raw } from './statements.js';

/**
 * Interval between two checks of the server's durability settings, in ms. After a restart of the server, the
 * settings are known sooner, because each new connection reads them, too.
 */
const TURN_MS = 5000;

export class PostgresDurabilityWatch extends PeriodicService {
  readonly name = 'durability watch of Postgres';

  constructor(
    private readonly sql: Sql,
    private readonly durability: PostgresDurability,
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
  }

  protected async turn(): Promise<void> {
    this.durability.note(await durableSettings(this.sql));
  }

  /** A failed check is ignored, because the server did not respond. */
  protected onTurnFailed(): void {}
}

async function durableSettings(sql: Sql): Promise<DurableSettings> {
  const [row] = await sql<DurableSettings[]>`${raw(SETTINGS_SQL)}`;
  return row!;
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
