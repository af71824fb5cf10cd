/** Reads the settlement reports of all partners as a list for operators. */
import type { ReportStatus } from '../../domain/settlement.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';

/** Highest count that a list of reports returns. Counting stops at this number. */
const COUNTED_MAX = 10_000;

export interface ListedReport {
  readonly partnerId: number;
  readonly slug: string;
  readonly reportDate: string;
  readonly revision: number;
  readonly status: ReportStatus;
  readonly totalSpins: bigint;
  readonly ggrUsd: string;
  readonly disputeReason: string | null;
}

export class SettlementList {
  constructor(private readonly sql: Sql) {}

  /**
   * Returns one page of the newest revisions of all reports of all partners, newest day first. The status
   * DISPUTED selects reports with an open dispute, even if a worker has completed the report since.
   */
  async page(
    status: ReportStatus | undefined,
    page: number,
    limit: number,
  ): Promise<{ reports: ListedReport[]; total: number }> {
    const isListed =
      status === 'DISPUTED'
        ? raw(`NOT EXISTS (
        SELECT 1 FROM settlement_reports n
        WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date AND n.revision > r.revision
          AND (n.ends_dispute OR n.status IN ('ACKNOWLEDGED', 'DISPUTED')))`)
        : raw(`NOT EXISTS (
        SELECT 1 FROM settlement_reports n
        WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date AND n.revision > r.revision)`);
    const reports = await this.sql<ListedReport[]>`
      SELECT partner_id, slug, report_date::text AS report_date, revision, status,
        (report->>'totalSpins')::numeric AS total_spins, report->>'ggrUsd' AS ggr_usd, dispute_reason
      FROM settlement_reports r JOIN partners USING (partner_id)
      WHERE status = coalesce(${status ?? null}::text, status) AND ${isListed}
      ORDER BY r.report_date DESC, partner_id LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM settlement_reports r
        WHERE status = coalesce(${status ?? null}::text, status) AND ${isListed}
        LIMIT ${COUNTED_MAX}) c`;
    return { reports, total: safe(count!.total) };
  }
}
