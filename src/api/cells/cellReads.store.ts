/** Reads the cells with their owners, and the newest recoveries, for operators. */
import type { WithDates } from '../../domain/schema.js';
import type { Sql } from '../../postgres/connection.js';
import { safe } from '../../postgres/statements.js';
import type { Recovery as RecoverySchema } from './contract.js';

const RECOVERIES_LISTED = 50;

export interface CellRow {
  readonly cell: number;
  readonly epoch: bigint;
  readonly owner: string | null;
  readonly cursorId: bigint;
  readonly halted: string | null;
  /** True if the cell is being drained and accepts no new partners. */
  readonly isDraining: boolean;
  readonly partners: number;
  readonly games: number;
}

export type RecoveryRow = WithDates<typeof RecoverySchema, 'startedAt' | 'finishedAt'>;

type Counted = 'epoch' | 'voidedOutcomes';

export class CellReads {
  constructor(private readonly sql: Sql) {}

  async cells(): Promise<CellRow[]> {
    return this.sql<CellRow[]>`
      SELECT cell, epoch, CASE WHEN lease_until > now() THEN owner END AS owner, cursor_id, halted, is_draining,
        coalesce(partners, 0)::int AS partners, coalesce(games, 0)::int AS games
      FROM cells LEFT JOIN (
        SELECT cell, count(*) AS partners, sum(games)::bigint AS games
        FROM partners LEFT JOIN (SELECT partner_id, count(*) AS games FROM games GROUP BY partner_id) g USING (partner_id)
        GROUP BY cell
      ) p USING (cell) ORDER BY cell`;
  }

  async newestRecoveries(): Promise<RecoveryRow[]> {
    const rows = await this.sql<(Omit<RecoveryRow, Counted> & Record<Counted, bigint>)[]>`
      SELECT cell, epoch, reason, step, voided AS voided_outcomes, started_at, finished_at FROM recoveries
      ORDER BY started_at DESC, cell LIMIT ${RECOVERIES_LISTED}`;
    return rows.map((row) => ({
      ...row,
      epoch: safe(row.epoch),
      voidedOutcomes: safe(row.voidedOutcomes),
    }));
  }
}
