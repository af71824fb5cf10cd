/** Schemas and operations of settlement reports. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import {
  escapeFormulas,
  ID_MAX,
  nullable,
  Page,
  pageMembers,
  REASON_PATTERN,
  usd,
} from '../../domain/schema.js';
import { ReportStatus, SettlementReport } from '../../domain/settlement.js';
import { endpointsOf } from '../contract/endpoint.js';
import { ReasonQuery } from '../partners/contract.js';

const { partner, operator } = endpointsOf('Settlements');

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

const JUDGING_ERRORS = [ERRORS.reportAcknowledged, ERRORS.reportDisputed, ERRORS.reportStatus];

export const listSettlements = partner.get('listSettlements', '/settlements', {
  summary: 'List the settlement reports of all days, newest first',
  description: 'Lists the newest revision of each report, newest day first.',
  query: Page,
  response: SettlementList,
  hasSums: true,
  example: { reports: [REPORT], page: 1, limit: 20, total: 1 },
});

export const getSettlement = partner.get('getSettlement', '/settlements/{date}', {
  summary: 'Get the settlement report of a UTC day (CSV with `Accept: text/csv`)',
  description:
    'Returns the report of a UTC day. `integrityHash` is the SHA-256 of its canonical JSON (RFC 8785), and `previousHash` links it to the previous report. With `Accept: text/csv` the response is the breakdown by game as CSV.',
  query: ReadRevision,
  response: SettlementReport,
  hasSums: true,
  example: REPORT,
  csvExample:
    'gameConfigId,configName,displayName,gameType,spins,wageredUsd,paidOutUsd,ggrUsd,actualRtp,certifiedRtp,communityBonusUsd\r\n3,"CLASSIC_THREE","Classic Three","slot",1,0.25,0.5,-0.25,2,0.925,0\r\n',
});

export const acknowledgeSettlement = partner.post(
  'acknowledgeSettlement',
  '/settlements/{date}/acknowledge',
  {
    summary: 'Acknowledge the newest revision of a report permanently',
    description:
      'Accepts a report. An acknowledged report never changes. Send the `revision` that you have read, so that you do not acknowledge a newer revision unread.',
    query: JudgedRevision,
    body: AcknowledgeBody,
    isBodyOptional: true,
    response: SettlementReport,
    hasSums: true,
    errors: JUDGING_ERRORS,
    bodyExample: { revision: 1 },
    example: { ...REPORT, reportStatus: 'ACKNOWLEDGED', acknowledgedAt: '2026-11-22T09:30:00.084Z' },
  },
);

export const disputeSettlement = partner.post('disputeSettlement', '/settlements/{date}/dispute', {
  summary: 'Dispute the newest revision of a report',
  description: 'Rejects a report. The operator investigates and issues a new revision.',
  query: JudgedRevision,
  body: DisputeBody,
  response: SettlementReport,
  hasSums: true,
  errors: JUDGING_ERRORS,
  bodyExample: { reason: DISPUTE_REASON },
  example: {
    ...REPORT,
    reportStatus: 'DISPUTED',
    disputedAt: '2026-11-22T09:30:00.045Z',
    disputeReason: DISPUTE_REASON,
  },
});

export const makeSettlement = operator.post('makeSettlement', '/partners/{id}/settlements/{date}', {
  summary: 'Make the settlement report of a day, or a new revision of it',
  description:
    'Makes the report of a UTC day now, or a new revision of it. Reports are made every night without this call. The report is PENDING until the whole day is in the ledger. After a dispute, a revision with a `reason` resolves it. Without a reason the dispute stays open.',
  query: ReasonQuery,
  status: 201,
  response: SettlementReport,
  hasSums: true,
  errors: [ERRORS.noGames, ERRORS.reportStatus],
  failure: ERRORS.reportFailed,
  example: { ...REPORT, revision: 2 },
});

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

export const previewPartnerSettlement = operator.get(
  'previewPartnerSettlement',
  '/partners/{id}/settlements/{date}/preview',
  {
    summary: 'Get the next revision of a report without making it, with the revision that is disputed',
    description:
      'Composes the revision that `makeSettlement` would make now, and stores nothing. `disputed` is the newest revision with an open dispute, which a revision with a `reason` answers; null if there is none. Compare both before you answer a dispute.',
    response: SettlementPreview,
    hasSums: true,
    errors: makeSettlement.errors,
    example: {
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

export const getPartnerSettlement = operator.get(
  'getPartnerSettlement',
  '/partners/{id}/settlements/{date}',
  {
    ...getSettlement,
    summary: "Get the settlement report of a partner's day, in any revision",
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

export const listAllSettlements = operator.get('listAllSettlements', '/settlements', {
  summary: 'List the newest revision of the settlement reports of all partners, newest day first',
  description: 'A disputed report needs a new revision, which `makeSettlement` makes.',
  query: SettlementsQuery,
  response: OperatorSettlements,
  hasSums: true,
  example: {
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
});
