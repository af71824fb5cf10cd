/** What operators read beyond one partner: overview, cells, games, statements, spins, deliveries and reports of all. */
import { type Static, Type } from '#typebox';
import { CELL_MAX } from '../../domain/entryId.js';
import { AUDIT_REASON, ID_MAX, nullable, Page, pageMembers, timestamp, usd } from '../../domain/schema.js';
import { DealingState } from '../dealing/schemas.js';
import { OperatorGame } from '../games/schemas.js';
import { PlayerStatus } from '../players/schemas.js';
import { ReportStatus } from '../settlements/schemas.js';
import { SpinRecord } from '../spins/schemas.js';
import { Delivery, listedWebhookMembers } from '../webhooks/schemas.js';

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
