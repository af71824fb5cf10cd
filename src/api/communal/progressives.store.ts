/** Reads the communal progressives of all games as a list for operators. */
import { type CommunalRules, type CommunalStatus, communalStatus } from '../../domain/communal.js';
import type { Sql } from '../../postgres/connection.js';

const PROGRESSIVES_MAX = 200;

export interface Progressive {
  readonly gameConfigId: number;
  readonly partnerId: number;
  readonly displayName: string;
  readonly isEnabled: boolean;
  readonly status: CommunalStatus;
  readonly budgetMicros: bigint;
  readonly paidMicros: bigint;
}

export class Progressives {
  constructor(private readonly sql: Sql) {}

  /** Returns the games that have a communal progressive, with its newest rules, newest games first. */
  async list(): Promise<Progressive[]> {
    const rows = await this.sql<(Omit<Progressive, 'isEnabled' | 'status'> & { rules: CommunalRules })[]>`
      SELECT game_id AS game_config_id, partner_id, display_name, rules, coalesce(budget_micros, 0) AS budget_micros,
        coalesce((SELECT sum(paid_micros) FROM communal_days d WHERE d.game_id = r.game_id), 0) AS paid_micros
      FROM (SELECT DISTINCT ON (game_id) game_id, rules FROM communal_rules ORDER BY game_id DESC, version DESC
            LIMIT ${PROGRESSIVES_MAX}) r
        JOIN games USING (game_id) LEFT JOIN communal_pots USING (game_id)
      ORDER BY game_id DESC`;
    return rows.map(({ rules, ...row }) => ({
      ...row,
      isEnabled: rules.enabled,
      status: communalStatus(rules, Number(row.budgetMicros)),
    }));
  }
}
