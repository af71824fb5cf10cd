/** Stores the PAR sheets that were uploaded and validated. */
import type { Static } from '#typebox';
import type { ParSheet } from '../../domain/par.js';
import { because, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';
import type {
  OperatorParSheet as OperatorParSheetSchema,
  ParSheetResponse as ParSheetResponseSchema,
} from './contract.js';

/** Highest count that a list of PAR sheets reports. Counting stops at this number. */
const COUNTED_MAX = 10_000;

export type ParSheetStatus = 'ACTIVE' | 'RETIRED';

export type ParSheetSummary = Readonly<Static<typeof ParSheetResponseSchema>>;

export type ListedSheet = Readonly<Static<typeof OperatorParSheetSchema>>;

export interface ParSheetRow {
  readonly parSheetId: number;
  readonly partnerId: number;
  readonly status: ParSheetStatus;
  readonly sheet: ParSheet;
}

/** Columns of {@link ParSheetSummary}. */
const SUMMARY = raw(
  'par_sheet_id, game_title, num_reels, certified_rtp, symbol_count, tier_count, combination_count',
);

export class ParSheets {
  constructor(private readonly sql: Sql) {}

  /** Returns undefined if the partner already has its maximum number of active sheets. */
  async store(partnerId: number, sheet: ParSheet): Promise<ParSheetSummary | undefined> {
    return this.sql.begin(async (tx) => {
      // The lock on the partner's row makes uploads of the partner run one at a time, so that the count of
      // active sheets stays exact.
      const [cap] = await tx<{ max: number }[]>`
        SELECT max_par_sheets AS max FROM partners WHERE partner_id = ${partnerId} FOR NO KEY UPDATE`;
      const [row] = await tx<ParSheetSummary[]>`
        INSERT INTO par_sheets (partner_id, sheet, game_title, num_reels, certified_rtp, symbol_count, tier_count,
          combination_count)
        SELECT ${partnerId}::int, ${JSON.stringify(sheet)}::json, ${sheet.gameTitle}, ${sheet.numReels}::int,
          ${sheet.certifiedRtp}::float8, ${sheet.symbols.length}::int, ${sheet.tiers.length}::int,
          ${sheet.combinations.length}::int
        WHERE (SELECT count(*) FROM par_sheets WHERE partner_id = ${partnerId} AND status = 'ACTIVE') < ${cap!.max}
        RETURNING ${SUMMARY}`;
      return row;
    });
  }

  async listActive(partnerId: number): Promise<ParSheetSummary[]> {
    return this.sql<ParSheetSummary[]>`
      SELECT ${SUMMARY} FROM par_sheets WHERE partner_id = ${partnerId} AND status = 'ACTIVE' ORDER BY par_sheet_id`;
  }

  /** Finds a PAR sheet by number, regardless of its partner. */
  async find(parSheetId: number): Promise<ParSheetRow | undefined> {
    const [row] = await this.sql<ParSheetRow[]>`
      SELECT par_sheet_id, partner_id, status, sheet FROM par_sheets WHERE par_sheet_id = ${parSheetId}`;
    return row;
  }

  /**
   * Returns one page of PAR sheets, newest first, including retired sheets.
   *
   * @param partnerId undefined: sheets of all partners
   */
  async page(
    partnerId: number | undefined,
    page: number,
    limit: number,
  ): Promise<{ parSheets: ListedSheet[]; total: number }> {
    const of = partnerId ?? null;
    const parSheets = await this.sql<ListedSheet[]>`
      SELECT partner_id, status, ${SUMMARY} FROM par_sheets WHERE ${of}::int IS NULL OR partner_id = ${of}
      ORDER BY par_sheet_id DESC LIMIT ${limit} OFFSET ${Math.min((page - 1) * limit, COUNTED_MAX)}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM par_sheets WHERE ${of}::int IS NULL OR partner_id = ${of} LIMIT ${COUNTED_MAX}) c`;
    return { parSheets, total: safe(count!.total) };
  }

  /** Returns a PAR sheet as uploaded. Returns undefined if no such sheet exists. */
  async findListed(parSheetId: number): Promise<(ListedSheet & { sheet: ParSheet }) | undefined> {
    const [row] = await this.sql<(ListedSheet & { sheet: ParSheet })[]>`
      SELECT partner_id, status, ${SUMMARY}, sheet FROM par_sheets WHERE par_sheet_id = ${parSheetId}`;
    return row;
  }

  /** Returns undefined if no such sheet exists. */
  async setStatus(
    actor: string,
    parSheetId: number,
    status: ParSheetStatus,
    reason?: string,
  ): Promise<(ParSheetSummary & { partnerId: number; status: ParSheetStatus }) | undefined> {
    return this.sql.begin(async (tx) => {
      const [before] = await tx<{ status: ParSheetStatus }[]>`
        SELECT status FROM par_sheets WHERE par_sheet_id = ${parSheetId} FOR UPDATE`;
      if (before === undefined) return undefined;
      const [row] = await tx<(ParSheetSummary & { partnerId: number })[]>`
        UPDATE par_sheets SET status = ${status} WHERE par_sheet_id = ${parSheetId} RETURNING partner_id, ${SUMMARY}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'par-sheet.update',
        subject: `par-sheet:${parSheetId}`,
        before,
        after: { status, ...because(reason) },
      });
      return { ...row!, status };
    });
  }
}
