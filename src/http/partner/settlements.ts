/** Settlement reports: the partner reads, acknowledges and disputes them; the operator has them made (docs/contract.md §12). */
import { csvTexts } from '../../domain/csv.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import {
  DisputeBody,
  JudgedRevision,
  PATH,
  Page,
  ReadRevision,
  SettlementList,
  SettlementReport,
} from '../../domain/requests.js';
import { breakdownCsv, isDay, type Report } from '../../domain/settlement.js';
import type { Judgement, StoredReport } from '../../postgres/settlements.js';
import type { Store } from '../../postgres/store.js';
import type { Settlements } from '../../settlement/settlements.js';
import { cursorOf, pathId, type Route, type RouteRequest, summed } from '../route.js';

const DATE =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d)$|^\d{4}-(?:0[13-9]|1[0-2])-30$|^\d{4}-(?:0[13578]|1[02])-31$/;

export interface SettlementServices {
  readonly store: Store;
  readonly settlements: Settlements;
}

const reportOf = (stored: StoredReport) => ({
  ...stored.report,
  reportStatus: stored.status,
  integrityHash: stored.integrityHash,
  ...(stored.acknowledgedAt === null ? {} : { acknowledgedAt: stored.acknowledgedAt.toISOString() }),
  ...(stored.disputedAt === null ? {} : { disputedAt: stored.disputedAt.toISOString() }),
  ...(stored.disputeReason === null ? {} : { disputeReason: stored.disputeReason }),
});

/** @throws ApiError (KS-4105) where the path names no day of the calendar. */
function dateOf({ params }: RouteRequest): string {
  const date = params.date!;
  if (!isDay(date)) throw new ApiError(ERRORS.invalidDate);
  return date;
}

const JUDGING_ERRORS = [
  ERRORS.invalidDate,
  ERRORS.reportNotFound,
  ERRORS.reportAcknowledged,
  ERRORS.reportDisputed,
  ERRORS.reportStatus,
];

export const settlementRoutes = ({ store, settlements }: SettlementServices): Route[] => {
  /** A report may be judged once: the code says what it is (KS-4302 acknowledged, KS-4303 disputed). */
  const judge = async (request: RouteRequest, judgement: Judgement) => {
    const { partner, query } = request;
    const about = { partnerId: partner.partnerId, date: dateOf(request), revision: query.revision };
    const judged = await store.judgeReport(about, `partner:${partner.partnerId}`, judgement);
    if (typeof judged === 'object') return reportOf(judged);
    if (judged === 'missing') throw new ApiError(ERRORS.reportNotFound);
    if (judged === 'superseded') throw new ApiError(ERRORS.reportStatus);
    throw new ApiError(judged === 'ACKNOWLEDGED' ? ERRORS.reportAcknowledged : ERRORS.reportDisputed);
  };
  return [
    {
      method: 'get',
      path: '/settlements',
      operationId: 'listSettlements',
      tag: 'Settlements',
      summary: 'The settlement reports, newest first, the newest revision of each day',
      scope: 'partner',
      query: Page,
      status: 200,
      ...summed(SettlementList),
      errors: [],
      failure: ERRORS.internal,
      async handle({ partner, query, words }) {
        const cursor = cursorOf(words, DATE);
        const page = query.page ?? 1;
        const limit = query.limit!;
        const { reports, total } = await store.reportPage(partner.partnerId, page, limit, cursor);
        const nextCursor = reports.length < limit ? null : reports.at(-1)!.report.reportDate;
        return { reports: reports.map(reportOf), page, limit, total, nextCursor };
      },
    },
    {
      method: 'get',
      path: '/settlements/{date}',
      params: { date: PATH.reportDate },
      operationId: 'getSettlement',
      tag: 'Settlements',
      summary: 'The settlement report of a UTC day; with `Accept: text/csv` its breakdown by game',
      scope: 'partner',
      query: ReadRevision,
      status: 200,
      ...summed(SettlementReport),
      csv: (report: Report, { words }) => breakdownCsv(report, csvTexts(words)),
      errors: [ERRORS.invalidDate, ERRORS.reportNotFound],
      failure: ERRORS.internal,
      async handle(request) {
        const { partner, query } = request;
        const stored = await store.findReport(partner.partnerId, dateOf(request), query.revision);
        if (stored === undefined) throw new ApiError(ERRORS.reportNotFound);
        return reportOf(stored);
      },
    },
    {
      method: 'post',
      path: '/settlements/{date}/acknowledge',
      params: { date: PATH.reportDate },
      operationId: 'acknowledgeSettlement',
      tag: 'Settlements',
      summary: 'Acknowledge the newest revision of a report, for good',
      scope: 'partner',
      query: JudgedRevision,
      status: 200,
      ...summed(SettlementReport),
      errors: JUDGING_ERRORS,
      failure: ERRORS.internal,
      handle: (request) => judge(request, { status: 'ACKNOWLEDGED' }),
    },
    {
      method: 'post',
      path: '/settlements/{date}/dispute',
      params: { date: PATH.reportDate },
      operationId: 'disputeSettlement',
      tag: 'Settlements',
      summary: 'Dispute the newest revision of a report; the operator answers with a new one',
      scope: 'partner',
      body: DisputeBody,
      query: JudgedRevision,
      status: 200,
      ...summed(SettlementReport),
      errors: JUDGING_ERRORS,
      failure: ERRORS.internal,
      handle: (request) =>
        judge(request, { status: 'DISPUTED', reason: (request.body as DisputeBody).reason }),
    },
    {
      method: 'post',
      path: '/partners/{id}/settlements/{date}',
      params: { id: PATH.partnerId, date: PATH.reportDate },
      operationId: 'makeSettlement',
      tag: 'Settlements',
      summary:
        'Make the report of a day now, or a new revision of it; PENDING where not all of the day is in the ledger yet',
      scope: 'operator',
      status: 201,
      ...summed(SettlementReport),
      errors: [
        ERRORS.invalidDate,
        ERRORS.partnerNotFound,
        ERRORS.noGames,
        ERRORS.reportNotFound,
        ERRORS.reportStatus,
      ],
      failure: ERRORS.reportFailed,
      async handle(request) {
        const date = dateOf(request);
        return reportOf(await settlements.makeNow(pathId(request.params.id!), date, request.actor));
      },
    },
  ];
};
