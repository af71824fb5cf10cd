/**
 * Handlers of settlement reports: partners read, acknowledge and dispute them; operators request new reports
 * and list all reports (docs/contract.md §12).
 */
import type { PartnerJudgement, StoredReport } from '../../books/settlement/settlements.store.js';
import { csvTexts } from '../../domain/csv.js';
import { isDay, NO_DAY } from '../../domain/days.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { ExactNumber, jsonInteger } from '../../domain/exactJson.js';
import { breakdownCsv, type ReportStatus } from '../../domain/settlement.js';
import { pathId } from '../server/found.js';
import { type Route, type RouteRequest, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

const reportOf = (stored: StoredReport) => ({
  ...stored.report,
  reportStatus: stored.status,
  integrityHash: stored.integrityHash,
  ...(stored.acknowledgedAt === null ? {} : { acknowledgedAt: stored.acknowledgedAt.toISOString() }),
  ...(stored.disputedAt === null ? {} : { disputedAt: stored.disputedAt.toISOString() }),
  ...(stored.disputeReason === null ? {} : { disputeReason: stored.disputeReason }),
});

type JudgingRequest = Pick<
  RouteRequest<typeof contract.acknowledgeSettlement>,
  'partner' | 'params' | 'query' | 'body'
>;

function dateOf({ params: { date } }: { readonly params: { readonly date: string } }): string {
  if (!isDay(date)) {
    throw new ApiError(ERRORS.invalidDate, { details: [{ path: '/date', message: NO_DAY }] });
  }
  return date;
}

export const settlementRoutes = (services: Services): Route[] => {
  const { store, settlementReports: settlements } = services;
  /**
   * A report can be acknowledged or disputed only once. If it already was, the error code says which was done
   * (KS-4302: acknowledged, KS-4303: disputed).
   */
  const judge = async (request: JudgingRequest, judgement: PartnerJudgement) => {
    const { partner, query } = request;
    const about = {
      partnerId: partner.partnerId,
      date: dateOf(request),
      revision: query.revision,
      standing: request.body.revision,
    };
    const judged = await store.settlements.judge(about, `partner:${partner.partnerId}`, judgement);
    if (typeof judged === 'object') return reportOf(judged);
    if (judged === 'missing') throw new ApiError(ERRORS.reportNotFound);
    if (judged === 'superseded') throw new ApiError(ERRORS.reportStatus);
    throw new ApiError(judged === 'ACKNOWLEDGED' ? ERRORS.reportAcknowledged : ERRORS.reportDisputed);
  };
  return [
    route(contract.listSettlements, async ({ partner, query }) => {
      const { page = 1, limit } = query;
      const { reports, total } = await store.settlements.page(partner.partnerId, page, limit);
      return { reports: reports.map(reportOf), page, limit, total };
    }),
    route(
      contract.getSettlement,
      async (request) => {
        const { partner, query } = request;
        const stored = await store.settlements.find(partner.partnerId, dateOf(request), query.revision);
        if (stored === undefined) throw new ApiError(ERRORS.reportNotFound);
        return reportOf(stored);
      },
      { csv: (report, { query }) => breakdownCsv(report, csvTexts(query)) },
    ),
    route(contract.acknowledgeSettlement, (request) => judge(request, { status: 'ACKNOWLEDGED' })),
    route(contract.disputeSettlement, (request) =>
      judge(request, { status: 'DISPUTED', reason: request.body.reason }),
    ),
    route(contract.makeSettlement, async (request) => {
      const date = dateOf(request);
      return reportOf(
        await settlements.makeNow(pathId(request.params.id), date, request.actor, request.query.reason),
      );
    }),
    route(contract.previewPartnerSettlement, async (request) => {
      const { report, isComplete, disputed } = await settlements.preview(
        pathId(request.params.id),
        dateOf(request),
      );
      return {
        report: { ...report, reportStatus: isComplete ? 'GENERATED' : 'PENDING' },
        disputed: disputed === undefined ? null : reportOf(disputed),
      };
    }),
    listAllSettlements(services),
  ];
};

const listAllSettlements = ({ store }: Services): Route =>
  route(contract.listAllSettlements, async ({ query }) => {
    const { page = 1, limit } = query;
    const { reports, total } = await store.settlementList.page(
      query.status as ReportStatus | undefined,
      page,
      limit,
    );
    const items = reports.map(({ status, totalSpins, ggrUsd, ...report }) => ({
      ...report,
      reportStatus: status,
      totalSpins: jsonInteger(totalSpins),
      ggrUsd: new ExactNumber(ggrUsd),
    }));
    return { reports: items, page, limit, total };
  });
