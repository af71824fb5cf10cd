/** What operators read beyond one partner, and cells. */
import { type Static, Type } from '#typebox';
import { CELL_MAX } from '../../domain/entryId.js';
import { ERRORS } from '../../domain/errors.js';
import {
  AUDIT_REASON,
  ID_MAX,
  nullable,
  PATH,
  Page,
  pageMembers,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';
import { LISTED_WEBHOOK } from '../contract/examples.js';
import { DealingState } from '../dealing/contract.js';
import { getGame, OperatorGame } from '../games/contract.js';
import { PlayerStatus } from '../players/contract.js';
import { ReportStatus } from '../settlements/contract.js';
import { getSpin, SpinRecord } from '../spins/contract.js';
import { Delivery, listedWebhookMembers } from '../webhooks/contract.js';

export const trafficMembers = {
  spins: Type.Integer(),
  wageredUsd: usd('Sum of the wagers'),
  paidOutUsd: usd('Sum of the payouts'),
};

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

export const OperatorCell = Type.Object({
  cell: Type.Integer(),
  node: Type.String({ description: 'Address of the Redis server that holds it' }),
  slot: nullable(Type.Integer({ description: 'Its hash slot; null: no cluster' })),
  epoch: Type.Integer(),
  owner: nullable(Type.String({ description: 'The worker that books it; null: none does' })),
  bookedTo: nullable(timestamp()),
  outboxAgeSeconds: nullable(
    Type.Number({ description: 'Age of the oldest entry that Redis still has; null: it does not answer' }),
  ),
  outboxEntries: nullable(
    Type.Integer({ description: 'Entries that are not in the ledger; null: Redis does not answer' }),
  ),
  halted: nullable(Type.String({ description: 'Why its ledger is halted; null: it goes on' })),
  isDraining: Type.Boolean({ description: 'It takes no new partners' }),
  partners: Type.Integer(),
  games: Type.Integer(),
});

export const CellsBody = Type.Object({
  count: Type.Integer({ minimum: 1, maximum: CELL_MAX, description: 'How many cells to add' }),
});

export const CellsAdded = Type.Object({
  added: Type.Array(Type.Integer(), { description: 'Numbers of the new cells' }),
});

export const CellPatch = Type.Object({
  isDraining: Type.Boolean({ description: 'true: it takes no new partners; false: it does again' }),
  reason: Type.Optional(AUDIT_REASON),
});

export type CellsBody = Static<typeof CellsBody>;
export type CellPatch = Static<typeof CellPatch>;

export const RedisServer = Type.Object({
  isReady: Type.Boolean(),
  volatile: Type.Array(Type.String(), { description: 'Settings by which it may lose what it acknowledged' }),
  memoryBytes: nullable(Type.Integer()),
  maxMemoryBytes: nullable(Type.Integer({ description: '0: no bound but that of the machine' })),
});

export const Recovery = Type.Object({
  cell: Type.Integer(),
  epoch: Type.Integer(),
  reason: Type.String(),
  step: Type.String(),
  voidedOutcomes: Type.Integer(),
  startedAt: timestamp(),
  finishedAt: nullable(timestamp()),
});

export const Cells = Type.Object({
  cells: Type.Array(OperatorCell),
  redis: Type.Array(RedisServer),
  recoveries: Type.Array(Recovery, { description: 'The newest 50, newest first' }),
});

const partnerFilter = {
  partnerId: Type.Optional(
    Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Those of this partner only' }),
  ),
};

export const GamesQuery = Type.Object({ ...Page.properties, ...partnerFilter });

export const OperatorGameList = Type.Object({ games: Type.Array(OperatorGame), ...pageMembers });

export const GameDaysQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 400, default: 90, description: 'Days in the answer' }),
});

export const GameDay = Type.Object({
  day: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
  ...trafficMembers,
});

export const GameDays = Type.Object({ days: Type.Array(GameDay) });

export const StatementQuery = Type.Object({
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the answer before' })),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Entries in an answer' }),
});

export const StatementEntry = Type.Object({
  entryId: Type.String(),
  kind: Type.String({ description: 'Such as spin, opening, adjustment' }),
  createdAt: timestamp(),
  gameId: nullable(Type.Integer()),
  wagerUsd: usd('Taken from the player'),
  creditUsd: usd('Given to the player'),
  balanceUsd: usd('Balance after it'),
  requestId: nullable(Type.String()),
  spinId: nullable(Type.String({ description: 'Of a spin' })),
});

export const Statement = Type.Object({
  partnerId: Type.Integer(),
  playerId: Type.String(),
  status: PlayerStatus,
  balanceUsd: usd('Balance now'),
  createdAt: timestamp(),
  entries: Type.Array(StatementEntry),
  nextCursor: nullable(Type.String({ description: 'For `cursor`; null: there are no more' })),
});

export const SpinBlock = Type.Object({
  fromIndex: Type.Integer(),
  toIndex: Type.Integer({ description: 'The index after its last' }),
  commitment: Type.String({ description: 'Written down before its first outcome was dealt' }),
  createdAt: timestamp(),
});

export const LedgerRecord = Type.Object({
  ...StatementEntry.properties,
  cell: Type.Integer(),
  previousEntryId: Type.String({ description: "The player's entry before" }),
  outcomeIndex: nullable(
    Type.Integer({ description: "Place in the game's sequence of outcomes; null: a forced spin has none" }),
  ),
  outcomeCode: Type.Integer({ description: "Number of the outcome in the game's mathematics" }),
});

export const OperatorSpin = Type.Object({
  partnerId: Type.Integer(),
  spin: SpinRecord,
  entry: LedgerRecord,
  block: nullable(SpinBlock),
});

export const DeliveriesQuery = Type.Object({
  ...Page.properties,
  ...partnerFilter,
  status: Type.Optional(
    Type.String({
      pattern: '^(pending|delivered|failed)$',
      description: '`pending`, `delivered` or `failed`; absent: `failed`',
    }),
  ),
});

export const OperatorDelivery = Type.Object({
  ...Delivery.properties,
  partnerId: Type.Integer(),
  webhookId: Type.Integer(),
  url: Type.String(),
  body: Type.String({ description: 'What is sent, as version 1 of the API has it' }),
  lastError: nullable(Type.String({ description: 'Why the last attempt failed' })),
});

export const OperatorDeliveries = Type.Object({ deliveries: Type.Array(OperatorDelivery), ...pageMembers });

export const SettlementsQuery = Type.Object({
  ...Page.properties,
  status: Type.Optional(
    Type.String({
      pattern: '^(PENDING|GENERATED|ACKNOWLEDGED|DISPUTED)$',
      description: '`PENDING`, `GENERATED`, `ACKNOWLEDGED` or `DISPUTED`; absent: all',
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
  ggrUsd: usd('Gross gaming revenue: wagered − paid out'),
  disputeReason: nullable(Type.String()),
});

export const OperatorSettlements = Type.Object({ reports: Type.Array(ListedSettlement), ...pageMembers });

const TEXT = { maxLength: 200 };
export const AuditQuery = Type.Object({
  ...Page.properties,
  actor: Type.Optional(Type.String({ ...TEXT, description: 'Changes by this operator' })),
  action: Type.Optional(
    Type.String({ ...TEXT, description: 'Actions that begin so, such as `partner.` or `key.issue`' }),
  ),
  subject: Type.Optional(Type.String({ ...TEXT, description: 'Subjects that begin so, such as `game:7`' })),
});

const TRAFFIC = { spins: 48_210, wageredUsd: 12_052.5, paidOutUsd: 11_390.25 };
const ENTRY = {
  entryId: '7412907446960128010',
  kind: 'spin',
  createdAt: '2026-11-22T04:13:57.812Z',
  gameId: 3,
  wagerUsd: 0.25,
  creditUsd: 0.5,
  balanceUsd: 1000.25,
  requestId: 'first-spin',
  spinId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
};
export const listCells = endpoint(
  {
    method: 'get',
    path: '/cells',
    operationId: 'listCells',
    tag: 'Service',
    summary: 'Cells, Redis servers and the newest recoveries',
    scope: 'operator',
    status: 200,
    response: Cells,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Each partner lives in one cell. Recoveries are the newest 50.',
    response: {
      cells: [
        {
          cell: 0,
          node: '10.0.0.7:6379',
          slot: 32,
          epoch: 1,
          owner: 'worker-1',
          bookedTo: '2026-11-22T07:44:59.912Z',
          outboxAgeSeconds: 0.08,
          outboxEntries: 214,
          halted: null,
          isDraining: false,
          partners: 1,
          games: 3,
        },
      ],
      redis: [{ isReady: true, volatile: [], memoryBytes: 31_457_280, maxMemoryBytes: 0 }],
      recoveries: [
        {
          cell: 0,
          epoch: 1,
          reason: 'Redis lost the cell',
          step: 'finished',
          voidedOutcomes: 6143,
          startedAt: '2026-11-21T22:01:12.400Z',
          finishedAt: '2026-11-21T22:01:13.020Z',
        },
      ],
    },
  },
);

export const addCells = endpoint(
  {
    method: 'post',
    path: '/cells',
    operationId: 'addCells',
    tag: 'Service',
    summary: 'Add cells, so that partners spread over more of them',
    scope: 'operator',
    body: CellsBody,
    status: 201,
    response: CellsAdded,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'Every process knows the new cells within a second, and the workers share them. New partners go to them, since they have the fewest; those that exist stay where they are.',
    request: { count: 4 },
    response: { added: [4, 5, 6, 7] },
  },
);

export const setDraining = endpoint(
  {
    method: 'patch',
    path: '/cells/{cell}',
    params: { cell: PATH.cell },
    operationId: 'setDraining',
    tag: 'Service',
    summary: 'Let a cell take no new partners, or some again',
    scope: 'operator',
    body: CellPatch,
    status: 204,
    errors: [ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description: "A cell that drains takes no new partners. The last cell that takes any can't drain.",
    request: { isDraining: true },
  },
);

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

export const listAllGames = endpoint(
  {
    method: 'get',
    path: '/games',
    operationId: 'listAllGames',
    tag: 'Games',
    summary: 'Games with their queues and totals, newest first',
    scope: 'operator',
    query: GamesQuery,
    status: 200,
    response: OperatorGameList,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Games of all partners, or of one with `partnerId`. `total` counts all of them.',
    response: { games: [getGame.shown.response], page: 1, limit: 20, total: 1 },
  },
);

export const listGameDays = endpoint(
  {
    method: 'get',
    path: '/games/{id}/days',
    params: { id: PATH.gameId },
    operationId: 'listGameDays',
    tag: 'Games',
    summary: 'What a game took and paid by UTC day, newest first',
    scope: 'operator',
    query: GameDaysQuery,
    status: 200,
    response: GameDays,
    hasSums: true,
    errors: [ERRORS.gameNotFound],
    failure: ERRORS.internal,
  },
  {
    description: 'Days without a spin are left out. Their sums are the totals of the game.',
    response: { days: [{ day: '2026-11-22', ...TRAFFIC }] },
  },
);

export const getStatement = endpoint(
  {
    method: 'get',
    path: '/partners/{id}/players/{playerId}/statement',
    params: { id: PATH.partnerId, playerId: PATH.playerId },
    operationId: 'getStatement',
    tag: 'Players',
    summary: 'A player with every entry of its ledger, newest first',
    scope: 'operator',
    query: StatementQuery,
    status: 200,
    response: Statement,
    hasSums: true,
    errors: [ERRORS.partnerNotFound, ERRORS.playerNotFound, ERRORS.unavailable],
    failure: ERRORS.internal,
  },
  {
    description:
      'Every entry, of whatever kind: spins, the opening, adjustments, shares of a communal progressive, steps of rounds. The balance after each is the one before it, less the wager, plus the credit.',
    response: {
      partnerId: 2,
      playerId: 'alice',
      status: 'ACTIVE',
      balanceUsd: 1000.25,
      createdAt: '2026-11-22T04:13:57.812Z',
      entries: [ENTRY],
      nextCursor: null,
    },
  },
);

export const showSpin = endpoint(
  {
    method: 'get',
    path: '/spins/{spinId}',
    params: { spinId: PATH.spinId },
    operationId: 'showSpin',
    tag: 'Spins',
    summary: "A spin of any partner's: its answer, its ledger entry, the block it was sealed in",
    scope: 'operator',
    status: 200,
    response: OperatorSpin,
    hasSums: true,
    errors: [ERRORS.notFound, ERRORS.unavailable],
    failure: ERRORS.internal,
  },
  {
    description:
      'Also shows the place of the outcome in its game, and the commitment to the block that had it: written down before the first outcome of the block was dealt.',
    response: {
      partnerId: 2,
      spin: getSpin.shown.response,
      entry: {
        ...ENTRY,
        cell: 4,
        previousEntryId: '7412907446960128009',
        outcomeIndex: 0,
        outcomeCode: 1,
      },
      block: {
        fromIndex: 0,
        toIndex: 2048,
        commitment: 'c52d486e3cfaf7bd8c98764f22378544f585fed376706fccfe80cbb891459928',
        createdAt: '2026-11-22T04:13:57.210Z',
      },
    },
  },
);

export const listAllDeliveries = endpoint(
  {
    method: 'get',
    path: '/deliveries',
    operationId: 'listAllDeliveries',
    tag: 'Webhooks',
    summary: 'Deliveries of all partners by status, with what is sent and why it failed',
    scope: 'operator',
    query: DeliveriesQuery,
    status: 200,
    response: OperatorDeliveries,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'The newest attempts first; the list reaches back over 10,000 deliveries.',
    response: {
      deliveries: [
        {
          id: 'dlv_019abcde0123456789abcdef01234567',
          partnerId: 2,
          webhookId: 1,
          url: 'https://games.acme.example/hooks',
          event: 'spin.large_win',
          status: 'failed',
          attempts: 5,
          maxAttempts: 5,
          createdAt: '2026-11-22T04:14:01.783Z',
          lastAttemptAt: '2026-11-22T05:35:01.783Z',
          nextAttemptAt: null,
          responseStatus: 503,
          body: '{"id":"evt_1","event":"spin.large_win"}',
          lastError: 'HTTP 503',
        },
      ],
      page: 1,
      limit: 20,
      total: 1,
    },
  },
);

export const listAllSettlements = endpoint(
  {
    method: 'get',
    path: '/settlements',
    operationId: 'listAllSettlements',
    tag: 'Settlements',
    summary: 'The newest revision of the settlement reports of all partners, newest day first',
    scope: 'operator',
    query: SettlementsQuery,
    status: 200,
    response: OperatorSettlements,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'A report that is disputed waits for a new revision, which `makeSettlement` makes.',
    response: {
      reports: [
        {
          partnerId: 2,
          slug: 'acme',
          reportDate: '2026-11-21',
          revision: 1,
          reportStatus: 'DISPUTED',
          totalSpins: 48_210,
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
