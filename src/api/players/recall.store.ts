/**
 * Reads the data that a game recall shows beside the ledger entries: shares of bonuses and names of games
 * (docs/contract.md §11).
 */

import type { Sql } from '../../postgres/connection.js';
import { arrayOf } from '../../postgres/statements.js';

export interface RecalledShare {
  readonly eventId: bigint;
  readonly tierLevel: number;
  readonly tierName: string;
  readonly isTrigger: boolean;
  /**
   * Entry id of the spin that notified the player of the share; null if no spin has notified the player yet.
   */
  readonly notifiedBy: bigint | null;
}

export class Recall {
  constructor(private readonly sql: Sql) {}

  async shares(entryIds: readonly bigint[]): Promise<ReadonlyMap<bigint, RecalledShare>> {
    if (entryIds.length === 0) return new Map();
    const rows = await this.sql<(RecalledShare & { entryId: bigint })[]>`
      SELECT entry_id, event_id, tier_level, tier_name, is_trigger, told_by AS notified_by
      FROM communal_shares JOIN communal_events USING (event_id)
      WHERE entry_id = ANY(${arrayOf(entryIds)}::bigint[])`;
    return new Map(rows.map(({ entryId, ...share }) => [entryId, share]));
  }

  async displayNames(gameIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const rows = await this.sql<{ gameId: number; displayName: string }[]>`
      SELECT game_id, display_name FROM games WHERE game_id = ANY(${arrayOf(gameIds)}::int[])`;
    return new Map(rows.map((row) => [row.gameId, row.displayName]));
  }
}
