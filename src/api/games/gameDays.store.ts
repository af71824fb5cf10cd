/** Reads the daily totals of a game. */
import type { Sql } from '../../postgres/connection.js';
import type { TrafficDay } from '../traffic/traffic.store.js';

export class GameDays {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns the days on which a game was played, newest first. */
  async newest(gameId: number, limit: number): Promise<TrafficDay[]> {
    const rows = await this.#sql<{ day: string; spins: bigint; wagered: bigint; paid: bigint }[]>`
      SELECT day::text AS day, spins, wagered_micros AS wagered, paid_micros AS paid FROM game_days
      WHERE game_id = ${gameId} ORDER BY day DESC LIMIT ${limit}`;
    return rows.map((row) => ({
      day: row.day,
      spins: row.spins,
      wageredMicros: row.wagered,
      paidMicros: row.paid,
    }));
  }
}
