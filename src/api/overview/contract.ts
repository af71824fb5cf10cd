/** Schemas and operation of the overview for operators: traffic, errors and open tasks. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { choice, nullable, timestamp } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';
import { LISTED_WEBHOOK, TRAFFIC } from '../contract/examples.js';
import { DealingState } from '../dealing/contract.js';
import { trafficMembers } from '../traffic/contract.js';
import { listedWebhookMembers } from '../webhooks/contract.js';

const { operator } = endpointsOf('Service');

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
  leSeconds: nullable(
    Type.Number({
      description: 'Upper bound of the bucket, in seconds; null for the bucket with all responses',
    }),
  ),
  count: Type.Integer({
    description: 'Number of responses up to the bound, including those of lower buckets',
  }),
});

export const PartnerRequests = Type.Object({
  partnerId: nullable(
    Type.Integer({ description: 'Id of the partner; null for the sum of all other partners' }),
  ),
  requests: Type.Integer(),
  errors: Type.Integer({ description: 'Number of requests that were answered with an error' }),
});

export const FrontEndProcess = Type.Object(
  {
    id: Type.String({ description: 'Id of the process, which stays the same until the process ends' }),
    spins: Type.Integer({ description: 'Number of spins that the process dealt' }),
    errors: Type.Array(OperationErrors),
    spinSeconds: Type.Array(LatencyBucket),
    partners: Type.Array(PartnerRequests, {
      description:
        'The ten partners with the most requests, the ten partners with the most errors, and the sum of all other partners',
    }),
  },
  { description: 'Counters of the front end that answers the request, since its start' },
);

export const TrafficToday = Type.Object(
  { ...trafficMembers, partners: Type.Integer({ description: 'Number of partners with spins on this day' }) },
  { description: 'Totals of the current UTC day in the ledger' },
);

export const TrafficEnd = choice(
  ['SAME_TIME', 'END_OF_DAY'],
  '`SAME_TIME`: the totals end at the present time of day, and contain a proportionate share of the hour in which they end; `END_OF_DAY`: the totals are those of the whole day, because its hours are not stored',
);

export const TrafficYesterday = Type.Object(
  {
    ...trafficMembers,
    until: TrafficEnd,
  },
  { description: 'Totals of the previous UTC day in the ledger, to compare today with' },
);

export const Attention = Type.Object(
  {
    failedDeliveries: Type.Integer({ description: 'Number of failed deliveries, counted up to 10,000' }),
    lateDeliveries: Type.Integer({
      description: 'Number of deliveries that have been due for more than five minutes, counted up to 10,000',
    }),
    failingWebhooks: Type.Integer({
      description:
        'Number of webhooks that have failed for more than five minutes, or were deactivated because of failures',
    }),
    disputedReports: Type.Integer(),
    haltedCells: Type.Integer(),
    openRecoveries: Type.Integer(),
    openReviews: Type.Integer({ description: 'Number of open reviews of returns to player' }),
    dryGames: Type.Integer({
      description:
        'Number of active games without an outcome to deal, counted among the 100 games that have been below their reserve for the longest time',
    }),
    exhaustedProgressives: Type.Integer({
      description: 'Number of enabled communal progressives whose budget is below their smallest tier',
    }),
    suspendedGames: Type.Integer({ description: 'Number of suspended games of active partners' }),
    stoppedPartners: Type.Integer({ description: 'Number of partners for which dealing is switched off' }),
    expiringKeys: Type.Integer({ description: 'Number of API keys of partners that expire within 14 days' }),
    missingWitnesses: Type.Array(Type.String(), {
      description:
        'Witnesses whose cosignature the public log has awaited for more than ten seconds. Without a quorum of witnesses no further blocks can be dealt.',
    }),
    dealing: DealingState,
  },
  { description: 'Issues that need the attention of an operator' },
);

export const FailingWebhook = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  ...listedWebhookMembers,
});

export const ProblemEffect = choice(
  ['SPINS_REFUSED', 'SOME_REFUSED', 'WORK_WAITS', 'ATTENTION'],
  '`SPINS_REFUSED`: no spin is dealt; `SOME_REFUSED`: spins of some cells or games are refused; `WORK_WAITS`: spins are dealt, and other work waits; `ATTENTION`: neither is affected',
);

export const Problem = Type.Object(
  {
    name: Type.String({ description: 'Name of the problem, as in the metric `spindle_problem`' }),
    effect: ProblemEffect,
    message: Type.String({ description: 'What is wrong, in one line' }),
    since: timestamp(),
    spins: Type.String({ description: 'What the problem means for spins' }),
    help: Type.String({ description: 'What helps' }),
  },
  { description: 'A problem of the answering process or of its stores, as `/statusz` lists it' },
);

export const Overview = Type.Object({
  at: timestamp(),
  problems: Type.Array(Problem, { description: 'Problems of the service, the worst first' }),
  today: TrafficToday,
  yesterday: TrafficYesterday,
  busiest: Type.Array(PartnerTraffic, { description: 'The ten partners with the most spins today' }),
  attention: Attention,
  failingWebhooks: Type.Array(FailingWebhook, {
    description:
      'The ten webhooks that have failed for the longest time, also if they failed first within the last five minutes',
  }),
  process: FrontEndProcess,
});

export const getOverview = operator.get('getOverview', '/overview', {
  summary: "Get today's traffic, errors, latency and open issues",
  description:
    'Returns the totals of today and of yesterday in the ledger, and the counters of the front end that answers the request. To compute rates, subtract the counters of two responses.',
  response: Overview,
  hasSums: true,
  example: {
    at: '2026-11-22T07:45:00.000Z',
    problems: [
      {
        name: 'cells-not-served',
        effect: 'WORK_WAITS',
        message: 'No worker is alive, so none owns cells 0, 1 since 2026-11-22T07:44:12.000Z',
        since: '2026-11-22T07:44:12.000Z',
        spins:
          'Loaded outcomes are dealt until they or the outbox run out; nothing is committed to the ledger',
        help: 'Start a worker (ROLES=worker), and read its log if it does not take the cells',
      },
    ],
    today: { ...TRAFFIC, partners: 1 },
    yesterday: { spins: 46_120, wageredUsd: 11_530, paidOutUsd: 10_702.75, until: 'SAME_TIME' },
    busiest: [{ partnerId: 2, slug: 'acme', ...TRAFFIC }],
    attention: {
      failedDeliveries: 3,
      lateDeliveries: 618,
      failingWebhooks: 1,
      disputedReports: 1,
      haltedCells: 0,
      openRecoveries: 0,
      openReviews: 1,
      dryGames: 0,
      exhaustedProgressives: 0,
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
});

export type ProcessFigures = Readonly<Omit<Static<typeof FrontEndProcess>, 'id'>>;
