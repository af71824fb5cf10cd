/** Schemas and operation of the overview for operators: traffic, errors and open tasks. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { nullable, timestamp } from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';
import { LISTED_WEBHOOK, TRAFFIC } from '../contract/examples.js';
import { DealingState } from '../dealing/contract.js';
import { trafficMembers } from '../traffic/contract.js';
import { listedWebhookMembers } from '../webhooks/contract.js';

export const PartnerTraffic = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  ...trafficMembers,
});

export const OperationErrors = Type.Object({
  operation: Type.String(),
  errorCode: Type.String(),
  count: Type.Integer(),
});

export const LatencyBucket = Type.Object({
  leSeconds: nullable(Type.Number({ description: 'Answers that took at most so long; null: all' })),
  count: Type.Integer({ description: 'Those of the buckets below are counted, too' }),
});

export const PartnerRequests = Type.Object({
  partnerId: nullable(Type.Integer({ description: 'Null: all other partners together' })),
  requests: Type.Integer(),
  errors: Type.Integer({ description: 'Those that were answered with an error' }),
});

export const FrontEndProcess = Type.Object(
  {
    id: Type.String({ description: 'The same until the process ends' }),
    spins: Type.Integer({ description: 'Spins that it dealt' }),
    errors: Type.Array(OperationErrors),
    spinSeconds: Type.Array(LatencyBucket),
    partners: Type.Array(PartnerRequests, {
      description:
        'The ten partners with the most requests, the ten with the most errors, and the others together',
    }),
  },
  { description: 'The front end that answers: counted since its start' },
);

export const TrafficToday = Type.Object(
  { ...trafficMembers, partners: Type.Integer({ description: 'Partners that spun' }) },
  { description: 'What the ledger has of this UTC day' },
);

export const Attention = Type.Object(
  {
    failedDeliveries: Type.Integer({ description: 'Counted up to 10,000' }),
    lateDeliveries: Type.Integer({ description: 'Due for more than five minutes; counted up to 10,000' }),
    failingWebhooks: Type.Integer({
      description: 'Have failed for more than five minutes, or were set inactive for it',
    }),
    disputedReports: Type.Integer(),
    haltedCells: Type.Integer(),
    openRecoveries: Type.Integer(),
    openReviews: Type.Integer({ description: 'Reviews of returns that nobody has closed' }),
    suspendedGames: Type.Integer({ description: 'Of active partners' }),
    stoppedPartners: Type.Integer({ description: 'Partners for which dealing is switched off' }),
    expiringKeys: Type.Integer({ description: 'Keys of partners that expire within 14 days' }),
    missingWitnesses: Type.Array(Type.String(), {
      description:
        'Witnesses for which the public log has waited for more than ten seconds: without a quorum no further block can be dealt',
    }),
    dealing: DealingState,
  },
  { description: 'What waits for somebody to look at it' },
);

export const FailingWebhook = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  ...listedWebhookMembers,
});

export const Overview = Type.Object({
  at: timestamp(),
  today: TrafficToday,
  busiest: Type.Array(PartnerTraffic, { description: 'The ten partners that spun most today' }),
  attention: Attention,
  failingWebhooks: Type.Array(FailingWebhook, { description: 'The ten that have failed for longest' }),
  process: FrontEndProcess,
});

export const getOverview = endpoint(
  {
    method: 'get',
    path: '/overview',
    operationId: 'getOverview',
    tag: 'Service',
    summary: 'Traffic of today, errors, latency, and what waits for somebody to look at it',
    scope: 'operator',
    status: 200,
    response: Overview,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'What the ledger has of today, and what the front end that answers has counted since its start. Rates come from the differences of two answers.',
    response: {
      at: '2026-11-22T07:45:00.000Z',
      today: { ...TRAFFIC, partners: 1 },
      busiest: [{ partnerId: 2, slug: 'acme', ...TRAFFIC }],
      attention: {
        failedDeliveries: 3,
        lateDeliveries: 618,
        failingWebhooks: 1,
        disputedReports: 1,
        haltedCells: 0,
        openRecoveries: 0,
        openReviews: 1,
        suspendedGames: 2,
        stoppedPartners: 0,
        expiringKeys: 1,
        missingWitnesses: [],
        dealing: 'ON',
      },
      failingWebhooks: [{ partnerId: 2, slug: 'acme', ...LISTED_WEBHOOK }],
      process: {
        id: '8c2f0f5e-6a0d-4f8a-9a53-6f3f2b0d7a11',
        spins: 48_215,
        errors: [{ operation: 'spin', errorCode: ERRORS.spinRateExceeded.code, count: 12 }],
        spinSeconds: [
          { leSeconds: 0.0025, count: 48_100 },
          { leSeconds: null, count: 48_215 },
        ],
        partners: [
          { partnerId: 2, requests: 48_310, errors: 12 },
          { partnerId: null, requests: 2_040, errors: 3 },
        ],
      },
    },
  },
);

/** Figures of one process that operators see. */
export type ProcessFigures = Readonly<Omit<Static<typeof FrontEndProcess>, 'id'>>;
