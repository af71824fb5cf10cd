/** Reads the daily totals of a game. */
import type { Sql } from '../../postgres/connection.js';
import type { TrafficDay } from '../traffic/traffic.store.js';

export class GameDays {
  constructor(private readonly sql: Sql) {}

  /** Returns the days on which a game was played, newest first. */
  async newest(gameId: number, limit: number): Promise<TrafficDay[]> {
    return this.sql<TrafficDay[]>`
      SELECT day::text AS day, spins, wagered_micros, paid_micros FROM game_days
      WHERE game_id = ${gameId} ORDER BY day DESC LIMIT ${limit}`;
  }
}
