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
  /** True if the player's own spin triggered the event of the communal progressive. */
  readonly isTrigger: boolean;
  /**
   * Entry id of the spin that notified the player of the share; null if no spin has notified the player yet.
   */
  readonly notifiedBy: bigint | null;
}

export class Recall {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns shares by the id of their ledger entry. */
  async shares(entryIds: readonly bigint[]): Promise<ReadonlyMap<bigint, RecalledShare>> {
    if (entryIds.length === 0) return new Map();
    const rows = await this.#sql<
      {
        entry_id: bigint;
        event_id: bigint;
        tier_level: number;
        tier_name: string;
        is_trigger: boolean;
        told_by: bigint | null;
      }[]
    >`
      SELECT entry_id, event_id, tier_level, tier_name, is_trigger, told_by
      FROM communal_shares JOIN communal_events USING (event_id)
      WHERE entry_id = ANY(${arrayOf(entryIds)}::bigint[])`;
    return new Map(
      rows.map((row) => [
        row.entry_id,
        {
          eventId: row.event_id,
          tierLevel: row.tier_level,
          tierName: row.tier_name,
          isTrigger: row.is_trigger,
          notifiedBy: row.told_by,
        },
      ]),
    );
  }

  async displayNames(gameIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const rows = await this.#sql<{ game_id: number; display_name: string }[]>`
      SELECT game_id, display_name FROM games WHERE game_id = ANY(${arrayOf(gameIds)}::int[])`;
    return new Map(rows.map((row) => [row.game_id, row.display_name]));
  }
}
