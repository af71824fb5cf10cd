/** Watches whether Postgres may lose what it has committed. */
import { PeriodicService } from '../platform/runtime/periodicService.js';
import type { Sql } from './connection.js';
import { type DurableSettings, type PostgresDurability, SETTINGS_SQL } from './postgresDurability.js';
import { raw } from './statements.js';

/** A server that was started again is looked at by the connections made to it. */
const TURN_MS = 5000;

export class PostgresDurabilityWatch extends PeriodicService {
  readonly name = 'durability watch of Postgres';
  readonly #sql: Sql;
  readonly #durability: PostgresDurability;

  constructor(sql: Sql, durability: PostgresDurability) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#sql = sql;
    this.#durability = durability;
  }

  protected async turn(): Promise<void> {
    this.#durability.note(await durableSettings(this.#sql));
  }

  /** A look finds nothing where the server does not answer. */
  protected onTurnFailed(): void {}
}

async function durableSettings(sql: Sql): Promise<DurableSettings> {
  const [row] = await sql<DurableSettings[]>`${raw(SETTINGS_SQL)}`;
  return row!;
}

/** Whether a standby follows that may lack what is committed, as far as the role may see it. Copies that run once are none. */
export async function hasAsynchronousStandby(sql: Sql): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'async'
      AND application_name NOT IN ('pg_basebackup', 'pg_receivewal')`;
  return rows.length > 0;
}
