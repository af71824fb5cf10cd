/** PAR sheets as they were uploaded and found right. */
import type { Static } from '#typebox';
import type { ParSheet } from '../../domain/par.js';
import { because, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';
import { raw } from '../../postgres/statements.js';
import type { ParSheetResponse as ParSheetResponseSchema } from './contract.js';

export type ParSheetStatus = 'ACTIVE' | 'RETIRED';

/** What a list shows of a sheet. */
export type ParSheetSummary = Readonly<Static<typeof ParSheetResponseSchema>>;

export interface ParSheetRow {
  readonly parSheetId: number;
  readonly partnerId: number;
  readonly status: ParSheetStatus;
  readonly sheet: ParSheet;
}

/** Columns of a sheet's summary: {@link SUMMARY}. */
export interface SummaryRow {
  par_sheet_id: number;
  game_title: string;
  num_reels: number;
  certified_rtp: number;
  symbol_count: number;
  tier_count: number;
  combination_count: number;
}

export const SUMMARY = raw(
  'par_sheet_id, game_title, num_reels, certified_rtp, symbol_count, tier_count, combination_count',
);

export const summaryOf = (row: SummaryRow): ParSheetSummary => ({
  parSheetId: row.par_sheet_id,
  gameTitle: row.game_title,
  numReels: row.num_reels,
  certifiedRtp: row.certified_rtp,
  symbolCount: row.symbol_count,
  tierCount: row.tier_count,
  combinationCount: row.combination_count,
});

export class ParSheets {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Stores a sheet that was found right; undefined where the partner has as many active ones as it may. */
  async store(partnerId: number, sheet: ParSheet): Promise<ParSheetSummary | undefined> {
    return this.#sql.begin(async (tx) => {
      // Uploads of a partner go one after the other, so that the count holds.
      const [cap] = await tx<{ max: number }[]>`
        SELECT max_par_sheets AS max FROM partners WHERE partner_id = ${partnerId} FOR NO KEY UPDATE`;
      const [row] = await tx<SummaryRow[]>`
        INSERT INTO par_sheets (partner_id, sheet, game_title, num_reels, certified_rtp, symbol_count, tier_count,
          combination_count)
        SELECT ${partnerId}::int, ${JSON.stringify(sheet)}::json, ${sheet.gameTitle}, ${sheet.numReels}::int,
          ${sheet.certifiedRtp}::float8, ${sheet.symbols.length}::int, ${sheet.tiers.length}::int,
          ${sheet.combinations.length}::int
        WHERE (SELECT count(*) FROM par_sheets WHERE partner_id = ${partnerId} AND status = 'ACTIVE') < ${cap!.max}
        RETURNING ${SUMMARY}`;
      return row === undefined ? undefined : summaryOf(row);
    });
  }

  async listActive(partnerId: number): Promise<ParSheetSummary[]> {
    const rows = await this.#sql<SummaryRow[]>`
      SELECT ${SUMMARY} FROM par_sheets WHERE partner_id = ${partnerId} AND status = 'ACTIVE' ORDER BY par_sheet_id`;
    return rows.map(summaryOf);
  }

  /** A sheet by its number, whoever's it is. */
  async find(parSheetId: number): Promise<ParSheetRow | undefined> {
    const [row] = await this.#sql<
      { par_sheet_id: number; partner_id: number; status: ParSheetStatus; sheet: ParSheet }[]
    >`SELECT par_sheet_id, partner_id, status, sheet FROM par_sheets WHERE par_sheet_id = ${parSheetId}`;
    if (row === undefined) return undefined;
    return { parSheetId: row.par_sheet_id, partnerId: row.partner_id, status: row.status, sheet: row.sheet };
  }

  /** Sets the status; undefined where there is no such sheet. */
  async setStatus(
    actor: string,
    parSheetId: number,
    status: ParSheetStatus,
    reason?: string,
  ): Promise<(ParSheetSummary & { partnerId: number; status: ParSheetStatus }) | undefined> {
    return this.#sql.begin(async (tx) => {
      const [before] = await tx<{ status: ParSheetStatus }[]>`
        SELECT status FROM par_sheets WHERE par_sheet_id = ${parSheetId} FOR UPDATE`;
      if (before === undefined) return undefined;
      const [row] = await tx<(SummaryRow & { partner_id: number })[]>`
        UPDATE par_sheets SET status = ${status} WHERE par_sheet_id = ${parSheetId} RETURNING partner_id, ${SUMMARY}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'par-sheet.update',
        subject: `par-sheet:${parSheetId}`,
        before,
        after: { status, ...because(reason) },
      });
      return { ...summaryOf(row!), partnerId: row!.partner_id, status };
    });
  }
}
