/** What a recall of a player's games shows beside their ledger entries (docs/contract.md §11): shares of bonuses, names of games. */

import type { Sql } from '../../postgres/connection.js';
import { arrayOf } from '../../postgres/statements.js';

export interface RecalledShare {
  readonly eventId: bigint;
  readonly tierLevel: number;
  readonly tierName: string;
  /** Its player's own spin fired the event. */
  readonly isTrigger: boolean;
  /** The spin that notified its player; null while none has. */
  readonly notifiedBy: bigint | null;
}

export class Recall {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Shares by the id of their ledger entry. */
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

  /** The names of games that players see. */
  async displayNames(gameIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const rows = await this.#sql<{ game_id: number; display_name: string }[]>`
      SELECT game_id, display_name FROM games WHERE game_id = ANY(${arrayOf(gameIds)}::int[])`;
    return new Map(rows.map((row) => [row.game_id, row.display_name]));
  }
}
