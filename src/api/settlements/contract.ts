/** Schemas and operations of settlement reports. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import {
  escapeFormulas,
  ID_MAX,
  nullable,
  PATH,
  Page,
  pageMembers,
  REASON_PATTERN,
  usd,
} from '../../domain/schema.js';
import { ReportStatus, SettlementReport } from '../../domain/settlement.js';
import { endpoint } from '../contract/endpoint.js';
import { ReasonQuery } from '../partners/contract.js';

const REVISION = Type.Integer({ minimum: 1, maximum: ID_MAX });

/** Query of a report: the revision to read, acknowledge or dispute. */
export const ReadRevision = Type.Object({
  revision: Type.Optional({
    ...REVISION,
    description: 'Revision of the report. Default: the newest revision.',
  }),
  escapeFormulas,
});

export const JudgedRevision = Type.Object({
  revision: Type.Optional({
    ...REVISION,
    description: `Revision that you have read. If a newer revision exists, nothing changes (${ERRORS.reportStatus.code}). Default: the newest revision.`,
  }),
});

const standing = Type.Optional({
  ...REVISION,
  description: `Revision that you have read. If it is not the newest revision, nothing changes (${ERRORS.reportStatus.code}).`,
});

export const AcknowledgeBody = Type.Object({ revision: standing });

export const DisputeBody = Type.Object({
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Reason for the dispute' }),
  revision: standing,
});

export const SettlementList = Type.Object({ reports: Type.Array(SettlementReport), ...pageMembers });

export type DisputeBody = Static<typeof DisputeBody>;

/** Example of a report. */
export const REPORT = {
  reportDate: '2026-11-21',
  reportStatus: 'GENERATED',
  revision: 1,
  totalSpins: 9,
  totalWageredUsd: 8.25,
  totalPaidOutUsd: 7.5,
  netPositionUsd: 0.75,
  ggrUsd: 0.75,
  communityBonusUsd: 0,
  adjustmentsUsd: 0,
  openRounds: 0,
  openWageredUsd: 0,
  gameBreakdown: [
    {
      gameConfigId: 3,
      configName: 'CLASSIC_THREE',
      displayName: 'Classic Three',
      gameType: 'slot',
      spins: 1,
      wageredUsd: 0.25,
      paidOutUsd: 0.5,
      ggrUsd: -0.25,
      actualRtp: 2,
      certifiedRtp: 0.925,
      communityBonusUsd: 0,
    },
    {
      gameConfigId: 4,
      configName: 'SPRING_RAFFLE',
      displayName: 'Spring Raffle',
      gameType: 'raffle',
      spins: 8,
      wageredUsd: 8,
      paidOutUsd: 7,
      ggrUsd: 1,
      actualRtp: 0.875,
      certifiedRtp: 0.875,
      communityBonusUsd: 0,
    },
  ],
  ledgerFrom: '7529695071436800000',
  ledgerTo: '7530057459302400000',
  previousHash: null,
  integrityHash: 'd341d898935042985edfde05394bf7245e8f3a5ede37b2f347c909f4f94eafe1',
  generatedAt: '2026-11-22T02:00:01.925Z',
};

const DISPUTE_REASON = 'We count 2 spins more than totalSpins';

const JUDGING_ERRORS = [
  ERRORS.invalidDate,
  ERRORS.reportNotFound,
  ERRORS.reportAcknowledged,
  ERRORS.reportDisputed,
  ERRORS.reportStatus,
];

export const listSettlements = endpoint(
  {
    method: 'get',
    path: '/settlements',
    operationId: 'listSettlements',
    tag: 'Settlements',
    summary: 'List the settlement reports of all days, newest first',
    scope: 'partner',
    query: Page,
    status: 200,
    response: SettlementList,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Lists the newest revision of each report, newest day first.',
    response: { reports: [REPORT], page: 1, limit: 20, total: 1 },
  },
);

export const getSettlement = endpoint(
  {
    method: 'get',
    path: '/settlements/{date}',
    params: { date: PATH.reportDate },
    operationId: 'getSettlement',
    tag: 'Settlements',
    summary: 'Get the settlement report of a UTC day (CSV with `Accept: text/csv`)',
    scope: 'partner',
    query: ReadRevision,
    status: 200,
    response: SettlementReport,
    hasSums: true,
    hasCsv: true,
    errors: [ERRORS.invalidDate, ERRORS.reportNotFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'Returns the report of a UTC day. `integrityHash` is the SHA-256 of its canonical JSON (RFC 8785), and `previousHash` links it to the previous report. With `Accept: text/csv` the response is the breakdown by game as CSV.',
    response: REPORT,
    csv: 'gameConfigId,configName,displayName,gameType,spins,wageredUsd,paidOutUsd,ggrUsd,actualRtp,certifiedRtp,communityBonusUsd\r\n3,"CLASSIC_THREE","Classic Three","slot",1,0.25,0.5,-0.25,2,0.925,0\r\n',
  },
);

export const acknowledgeSettlement = endpoint(
  {
    method: 'post',
    path: '/settlements/{date}/acknowledge',
    params: { date: PATH.reportDate },
    operationId: 'acknowledgeSettlement',
    tag: 'Settlements',
    summary: 'Acknowledge the newest revision of a report permanently',
    scope: 'partner',
    body: AcknowledgeBody,
    isBodyOptional: true,
    query: JudgedRevision,
    status: 200,
    response: SettlementReport,
    hasSums: true,
    errors: JUDGING_ERRORS,
    failure: ERRORS.internal,
  },
  {
    description:
      'Accepts a report. An acknowledged report never changes. Send the `revision` that you have read, so that you do not acknowledge a newer revision unread.',
    request: { revision: 1 },
    response: { ...REPORT, reportStatus: 'ACKNOWLEDGED', acknowledgedAt: '2026-11-22T09:30:00.084Z' },
  },
);

export const disputeSettlement = endpoint(
  {
    method: 'post',
    path: '/settlements/{date}/dispute',
    params: { date: PATH.reportDate },
    operationId: 'disputeSettlement',
    tag: 'Settlements',
    summary: 'Dispute the newest revision of a report',
    scope: 'partner',
    body: DisputeBody,
    query: JudgedRevision,
    status: 200,
    response: SettlementReport,
    hasSums: true,
    errors: JUDGING_ERRORS,
    failure: ERRORS.internal,
  },
  {
    description: 'Rejects a report. The operator investigates and issues a new revision.',
    request: { reason: DISPUTE_REASON },
    response: {
      ...REPORT,
      reportStatus: 'DISPUTED',
      disputedAt: '2026-11-22T09:30:00.045Z',
      disputeReason: DISPUTE_REASON,
    },
  },
);

export const makeSettlement = endpoint(
  {
    method: 'post',
    path: '/partners/{id}/settlements/{date}',
    params: { id: PATH.partnerId, date: PATH.reportDate },
    query: ReasonQuery,
    operationId: 'makeSettlement',
    tag: 'Settlements',
    summary: 'Make the settlement report of a day, or a new revision of it',
    scope: 'operator',
    status: 201,
    response: SettlementReport,
    hasSums: true,
    errors: [
      ERRORS.invalidDate,
      ERRORS.partnerNotFound,
      ERRORS.noGames,
      ERRORS.reportNotFound,
      ERRORS.reportStatus,
    ],
    failure: ERRORS.reportFailed,
  },
  {
    description:
      'Makes the report of a UTC day now, or a new revision of it. Reports are made every night without this call. The report is PENDING until the whole day is in the ledger. After a dispute, a revision with a `reason` resolves it. Without a reason the dispute stays open.',
    response: { ...REPORT, revision: 2 },
  },
);

export const NextSettlementReport = Type.Omit(
  SettlementReport,
  ['integrityHash', 'acknowledgedAt', 'disputedAt', 'disputeReason'],
  { description: 'The next revision as it would be made now. It is not stored and has no hash' },
);

export const SettlementPreview = Type.Object({
  report: NextSettlementReport,
  disputed: nullable(SettlementReport),
});

const { integrityHash, ...NEXT_REPORT } = REPORT;

export const previewPartnerSettlement = endpoint(
  {
    method: 'get',
    path: '/partners/{id}/settlements/{date}/preview',
    params: { id: PATH.partnerId, date: PATH.reportDate },
    operationId: 'previewPartnerSettlement',
    tag: 'Settlements',
    summary: 'Get the next revision of a report without making it, with the revision that is disputed',
    scope: 'operator',
    status: 200,
    response: SettlementPreview,
    hasSums: true,
    errors: makeSettlement.errors,
    failure: ERRORS.internal,
  },
  {
    description:
      'Composes the revision that `makeSettlement` would make now, and stores nothing. `disputed` is the newest revision with an open dispute, which a revision with a `reason` answers; null if there is none. Compare both before you answer a dispute.',
    response: {
      report: { ...NEXT_REPORT, revision: 2 },
      disputed: {
        ...REPORT,
        reportStatus: 'DISPUTED',
        disputedAt: '2026-11-22T09:30:00.045Z',
        disputeReason: DISPUTE_REASON,
      },
    },
  },
);

export const getPartnerSettlement = endpoint(
  {
    ...getSettlement,
    operationId: 'getPartnerSettlement',
    path: '/partners/{id}/settlements/{date}',
    params: { id: PATH.partnerId, date: PATH.reportDate },
    summary: "Get the settlement report of a partner's day, in any revision",
    scope: 'operator',
    errors: [...getSettlement.errors, ERRORS.partnerNotFound],
  },
  {
    ...getSettlement.shown,
    description: 'Returns the report as its partner reads it. `revision` selects an earlier revision.',
  },
);

export const SettlementsQuery = Type.Object({
  ...Page.properties,
  status: Type.Optional(
    Type.String({
      pattern: '^(PENDING|GENERATED|ACKNOWLEDGED|DISPUTED)$',
      description:
        'Only reports with this status: `PENDING`, `GENERATED`, `ACKNOWLEDGED` or `DISPUTED`. Default: all.',
    }),
  ),
});

export const ListedSettlement = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  reportDate: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
  revision: Type.Integer(),
  reportStatus: ReportStatus,
  totalSpins: Type.Integer(),
  ggrUsd: usd('Gross gaming revenue in USD: wagers − payouts'),
  disputeReason: nullable(Type.String()),
});

export const OperatorSettlements = Type.Object({ reports: Type.Array(ListedSettlement), ...pageMembers });

export const listAllSettlements = endpoint(
  {
    method: 'get',
    path: '/settlements',
    operationId: 'listAllSettlements',
    tag: 'Settlements',
    summary: 'List the newest revision of the settlement reports of all partners, newest day first',
    scope: 'operator',
    query: SettlementsQuery,
    status: 200,
    response: OperatorSettlements,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'A disputed report needs a new revision, which `makeSettlement` makes.',
    response: {
      reports: [
        {
          partnerId: 2,
          slug: 'acme',
          reportDate: '2026-11-21',
          revision: 1,
          reportStatus: 'DISPUTED',
          totalSpins: 48210,
          ggrUsd: 662.25,
          disputeReason: 'Two spins too many',
        },
      ],
      page: 1,
      limit: 20,
      total: 1,
    },
  },
);
