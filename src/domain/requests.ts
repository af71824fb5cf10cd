/**
 * What callers send and get, as schemas: they validate, they serialise, and the OpenAPI documents are made of them.
 * PAR sheets have their own file (par.ts). The rules: docs/contract.md §2 to §15.
 */
import { type Static, Type } from '#typebox';
import { ERRORS } from './errors.js';
import { MAX_POOL_SIZE } from './games/prizeTable.js';
import { MAX_MICROS, usdToMicros } from './money.js';
import { EVENT_TYPES, type EventType } from './webhook.js';

/** 1 to 128 Unicode characters, neither control characters nor lone surrogates; opaque, nothing is folded. */
const OPAQUE_PATTERN = '^[^\\p{Cc}\\p{Cs}]{1,128}$';
/** 1 to 2,000 Unicode characters; of the control characters newline and tab only, no lone surrogates. */
const REASON_PATTERN = '^(?:[^\\p{Cc}\\p{Cs}]|[\\n\\t]){1,2000}$';
const CONFIG_NAME_PATTERN = '^[A-Z0-9_]{1,64}$';
const SLUG_PATTERN = '^[a-z0-9-]{1,64}$';
const EMAIL_PATTERN = '^[^\\s@\\p{Cc}\\p{Cs}]{1,64}@[^\\s@\\p{Cc}\\p{Cs}]{1,190}$';

/** The patterns' rules in words, for faults. */
export const PATTERN_MESSAGES: Readonly<Record<string, string>> = {
  [OPAQUE_PATTERN]: 'must have 1 to 128 Unicode characters, without control characters or lone surrogates',
  [REASON_PATTERN]:
    'must have 1 to 2,000 Unicode characters, without lone surrogates and control characters but newline and tab',
  [CONFIG_NAME_PATTERN]: 'must have 1 to 64 uppercase letters, digits and underscores',
  [SLUG_PATTERN]: 'must have 1 to 64 lowercase letters, digits and hyphens',
  [EMAIL_PATTERN]: 'must be an e-mail address',
};

const opaque = (description: string) => Type.String({ pattern: OPAQUE_PATTERN, description });
const usd = (description: string) => Type.Number({ description });
const timestamp = () => Type.String({ format: 'date-time' });
const id = (description: string) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description });
/** The largest number that names a partner, key, sheet or game: the database's integer. */
export const ID_MAX = 2_147_483_647;
const pathNumber = (description: string) => Type.Integer({ minimum: 1, maximum: ID_MAX, description });
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** The variable parts of paths, by what they name. */
export const PATH = {
  partnerId: pathNumber('Id of the partner'),
  keyId: pathNumber('Id of the API key'),
  gameId: pathNumber('Game configuration id: the `gameConfigId` of the game'),
  parSheetId: pathNumber('Id of the PAR sheet'),
  webhookId: pathNumber('Id of the webhook'),
  deliveryId: Type.String({
    description: 'Id of the delivery: the `X-…-Delivery-Id` header that it carries',
  }),
  playerId: opaque("The partner's own identifier of the player, percent-encoded"),
  spinId: Type.String({ description: 'The `spinId` of the response' }),
  reportDate: Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$', description: 'UTC day, YYYY-MM-DD' }),
} satisfies Record<string, Type.TSchema>;

// Partner API --------------------------------------------------------------------------------------------------------

export const SpinBody = Type.Object({
  gameId: id('Game configuration id'),
  playerId: opaque("The partner's own identifier of the player"),
  wagerUsd: usd("The game's fixed wager"),
  requestId: Type.Optional(opaque('Idempotency key; binds for 24 hours at least')),
});

export const CelebrationTier = Type.Union(
  ['none', 'small', 'medium', 'large', 'jackpot'].map((tier) => Type.Literal(tier)),
  { description: 'How loudly the win is shown' },
);

export const ReelSymbol = Type.Object({
  name: Type.String(),
  display: Type.String(),
  isWild: Type.Boolean(),
});

export const SlotPresentation = Type.Object({
  type: Type.Literal('slot'),
  comboString: Type.String({ description: 'Symbol displays joined by |' }),
  reelSymbols: Type.Array(ReelSymbol),
  reelStops: Type.Array(Type.Integer()),
  animationHints: Type.Object({
    celebrationTier: CelebrationTier,
    isNearMiss: Type.Boolean(),
    isBonusTrigger: Type.Boolean(),
  }),
});

export const RafflePresentation = Type.Object({
  type: Type.Literal('raffle'),
  prizeName: Type.String(),
  prizeTier: Type.Integer({ minimum: 0, maximum: 6 }),
  celebrationTier: CelebrationTier,
});

export const SpinOutcome = Type.Object({
  prizeTier: Type.Integer({ minimum: 0, maximum: 6, description: '0 = no win' }),
  payoutUsd: usd('Win, the authoritative financial result'),
  isBonusTrigger: Type.Boolean(),
});

const spinMembers = {
  spinId: Type.String(),
  outcome: SpinOutcome,
  presentation: Type.Union([SlotPresentation, RafflePresentation]),
  balance: Type.Object({ balanceUsd: usd('Balance of the player after wager and payout') }),
  communityBonus: Type.Null({ description: 'Null where none was triggered' }),
  requestId: Type.Optional(Type.String({ description: 'As sent' })),
};

export const SpinResponse = Type.Object(spinMembers);
export const SpinRecord = Type.Object({
  ...spinMembers,
  createdAt: timestamp(),
  gameId: Type.Integer(),
  playerId: Type.String(),
});
export const PlayerSpin = Type.Object({ ...spinMembers, createdAt: timestamp(), gameId: Type.Integer() });

export const GameBody = Type.Object({
  parSheetId: id('The PAR sheet, which must be active'),
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  gameType: Type.Optional(Type.String({ description: '`slot`; raffles are made by the operator' })),
  minWagerUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
  maxWagerUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
  wagerIncrementUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
});

export const GameResponse = Type.Object({
  gameConfigId: Type.Integer({ description: 'The gameId of spins' }),
  displayName: Type.String(),
  configName: Type.String(),
  gameType: Type.String(),
  status: Type.String({
    description: 'ACTIVE or SUSPENDED; a raffle may be SEALING or CLOSED, too; may get further values',
  }),
  parSheetId: nullable(Type.Integer()),
  minWagerUsd: usd('Equal to the fixed wager'),
  maxWagerUsd: usd('Equal to the fixed wager'),
  wagerIncrementUsd: usd('Equal to the fixed wager'),
  poolSize: Type.Optional(Type.Integer({ description: 'Of a raffle: tickets in all' })),
  poolCommitment: Type.Optional(
    nullable(Type.String({ description: 'Of a raffle: seals its pool; null until it is sealed' })),
  ),
});
export const GameList = Type.Object({ games: Type.Array(GameResponse) });

export const ParSheetResponse = Type.Object({
  parSheetId: Type.Integer(),
  gameTitle: Type.String(),
  numReels: Type.Integer(),
  certifiedRtp: Type.Number(),
  symbolCount: Type.Integer(),
  tierCount: Type.Integer(),
  combinationCount: Type.Integer(),
});
export const ParSheetList = Type.Object({ parSheets: Type.Array(ParSheetResponse) });

export const PlayerResponse = Type.Object({
  userId: Type.String({ description: 'Internal id of the player' }),
  playerId: Type.String(),
  createdAt: timestamp(),
  balanceUsd: usd('Balance now'),
});

export const Page = Type.Object({
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, default: 1 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
});
const pageMembers = { page: Type.Integer(), limit: Type.Integer(), total: Type.Integer() };

export const PlayerSpins = Type.Object({ spins: Type.Array(PlayerSpin), ...pageMembers });

const REVISION = Type.Integer({ minimum: 1, maximum: ID_MAX });
/** Of a report's path: the revision that is wanted, or that is judged. */
export const ReadRevision = Type.Object({
  revision: Type.Optional({ ...REVISION, description: 'Absent: the newest' }),
});
export const JudgedRevision = Type.Object({
  revision: Type.Optional({
    ...REVISION,
    description: `The revision that was read: where a newer one was made since, nothing is changed (${ERRORS.reportStatus.code}). Absent: the newest`,
  }),
});
export const DisputeBody = Type.Object({
  reason: Type.String({ pattern: REASON_PATTERN, description: 'What is wrong' }),
});

const hash = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description });

export const SettlementGame = Type.Object({
  gameConfigId: Type.Integer(),
  configName: Type.String(),
  displayName: Type.String(),
  gameType: Type.String(),
  spins: Type.Integer({ minimum: 0 }),
  wageredUsd: usd('Sum of the wagers'),
  paidOutUsd: usd('Sum of the payouts'),
  ggrUsd: usd('Wagered − paid out'),
  actualRtp: nullable(
    Type.Number({
      description: 'Paid out / wagered, rounded half up to 6 decimals; null where nothing was wagered',
    }),
  ),
  certifiedRtp: nullable(
    Type.Number({
      description:
        "As the game's PAR sheet has it; of a raffle what its whole pool pays of what it takes, rounded likewise",
    }),
  ),
});

export const SettlementReport = Type.Object(
  {
    reportDate: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
    reportStatus: Type.Union(
      ['PENDING', 'GENERATED', 'ACKNOWLEDGED', 'DISPUTED'].map((status) => Type.Literal(status)),
      {
        description:
          'PENDING: made before all of the day was in the ledger, of what was booked up to ledgerTo; the complete report follows as a revision of its own, also where this one was acknowledged or disputed',
      },
    ),
    revision: Type.Integer({ minimum: 1, description: 'From 1; what a revision says never changes' }),
    totalSpins: Type.Integer({ minimum: 0 }),
    totalWageredUsd: usd('Sum of the wagers'),
    totalPaidOutUsd: usd('Sum of the payouts'),
    netPositionUsd: usd('Wagered − paid out'),
    ggrUsd: usd('Gross gaming revenue: wagered − paid out'),
    communityBonusUsd: usd('Always 0'),
    adjustmentsUsd: usd('Sum of the adjustments that the operator booked to players; in no other total'),
    gameBreakdown: Type.Array(SettlementGame, {
      description:
        'Every game that the partner had on that day, by gameConfigId, played or not; no raffle that was closed before it',
    }),
    ledgerFrom: Type.String({
      description:
        'First ledger entry id that could be of the day (decimal). An id is milliseconds since the Unix epoch × 2^22, plus cell and sequence',
    }),
    ledgerTo: Type.String({
      description:
        "The report covers the partner's ledger entries with ids from ledgerFrom up to, and without, this one: the first of the next day, or while PENDING the one after the last that was booked",
    }),
    previousHash: nullable(
      hash(
        "integrityHash of the partner's report before: of the newest day before this one that had a report when this was made, its newest revision; null for the first",
      ),
    ),
    integrityHash: hash(
      'SHA-256 of the canonical JSON (RFC 8785) of this object without integrityHash, reportStatus, acknowledgedAt, disputedAt and disputeReason',
    ),
    generatedAt: timestamp(),
    acknowledgedAt: Type.Optional(timestamp()),
    disputedAt: Type.Optional(timestamp()),
    disputeReason: Type.Optional(Type.String()),
  },
  { description: 'Amounts are exact, with at most 6 decimals' },
);
export const SettlementList = Type.Object({ reports: Type.Array(SettlementReport), ...pageMembers });

export const WebhookEvent = Type.Union(EVENT_TYPES.map((type) => Type.Literal(type)));

const WEBHOOK_URL = Type.String({
  description: 'A public https address; in the sandbox also http://localhost on any port',
});
const webhookMembers = {
  id: Type.Integer(),
  url: Type.String(),
  events: Type.Array(Type.String()),
  isActive: Type.Boolean(),
  createdAt: timestamp(),
};
export const WebhookBody = Type.Object({
  url: WEBHOOK_URL,
  events: Type.Array(WebhookEvent, { minItems: 1, uniqueItems: true }),
});
export const WebhookRegistered = Type.Object({
  ...webhookMembers,
  secret: Type.String({ description: 'Signs the deliveries; shown this once' }),
});
export const Webhook = Type.Object(webhookMembers);
export const WebhookList = Type.Object({ webhooks: Type.Array(Webhook) });
export const Delivery = Type.Object({
  id: Type.String(),
  event: Type.String(),
  status: Type.Union(['pending', 'delivered', 'failed'].map((status) => Type.Literal(status))),
  attempts: Type.Integer({ description: 'Attempts whose result is known' }),
  maxAttempts: Type.Integer(),
  createdAt: timestamp(),
  lastAttemptAt: nullable(timestamp()),
  nextAttemptAt: nullable(timestamp()),
  responseStatus: nullable(Type.Integer({ description: 'Of the last attempt; null: no answer' })),
});
export const DeliveryPage = Type.Object({
  deliveries: Type.Array(Delivery),
  ...pageMembers,
});

const eventOf = (event: EventType, data: Type.TProperties) =>
  Type.Object({
    id: Type.String({ description: 'The same in every attempt, and for every webhook' }),
    event: Type.Literal(event),
    createdAt: timestamp(),
    partnerId: Type.Integer(),
    data: Type.Object(data),
  });
/** What is sent to webhooks, by event type. */
export const EVENTS = {
  'spin.large_win': eventOf('spin.large_win', {
    spinId: Type.String(),
    gameId: Type.Integer(),
    playerId: Type.String(),
    payoutUsd: usd("Above the partner's threshold"),
    prizeTier: Type.Integer({ minimum: 1, maximum: 6 }),
    requestId: Type.Optional(Type.String()),
  }),
  'settlement.report_ready': eventOf('settlement.report_ready', {
    reportDate: Type.String({ description: 'YYYY-MM-DD' }),
    revision: Type.Integer(),
    integrityHash: Type.String(),
    totalSpins: Type.Integer(),
    ggrUsd: usd('Wagered less paid out'),
  }),
  'block.low_reserve': eventOf('block.low_reserve', {
    gameId: Type.Integer(),
    readyBlocks: Type.Integer({ minimum: 0 }),
    minReadyBlocks: Type.Integer({ minimum: 1 }),
  }),
  'api_key.expiring': eventOf('api_key.expiring', {
    keyId: Type.Integer(),
    name: nullable(Type.String()),
    expiresAt: timestamp(),
    daysLeft: Type.Integer({ description: '30, 7 or 1' }),
  }),
} satisfies Record<EventType, Type.TSchema>;

export const VersionResponse = Type.Object({
  version: Type.String(),
  apiVersion: Type.String(),
  service: Type.String(),
});

export const ErrorDetail = Type.Object({
  path: Type.String({ description: 'JSON Pointer (RFC 6901) of the faulty member; empty: the whole body' }),
  message: Type.String(),
});
export const ErrorResponse = Type.Object({
  status: Type.Literal('error'),
  errorCode: Type.String({ pattern: '^KS-[0-9]{4}$' }),
  message: Type.String(),
  retryAfter: Type.Optional(Type.Integer({ description: 'Seconds; on 429' })),
  details: Type.Optional(Type.Array(ErrorDetail)),
});

// Operator API -------------------------------------------------------------------------------------------------------

const RATE_LIMIT = { minimum: 1, maximum: 1_000_000_000 };

const settings = {
  spinRateLimit: Type.Integer({ ...RATE_LIMIT, description: 'Spins in a minute' }),
  apiRateLimit: Type.Integer({ ...RATE_LIMIT, description: 'Other requests in a minute' }),
  openingBalanceUsd: Type.Number({ minimum: 0, description: "A player's first balance" }),
  balanceMode: Type.Union([Type.Literal('track'), Type.Literal('enforce')]),
  fundingUsd: nullable(Type.Number({ minimum: 0, description: 'What the operator covers; null: no bound' })),
  largeWinThresholdUsd: Type.Number({ minimum: 0 }),
  minReadyBlocks: Type.Integer({ minimum: 1, maximum: 100 }),
  contactEmail: nullable(Type.String({ pattern: EMAIL_PATTERN })),
};

const PARTNER_NAME = opaque('Name of the partner');
export const Environment = Type.Union([Type.Literal('sandbox'), Type.Literal('production')]);

export const PartnerBody = Type.Object({
  slug: Type.String({ pattern: SLUG_PATTERN }),
  name: PARTNER_NAME,
  environment: Environment,
  ...Type.Partial(Type.Object(settings)).properties,
});
export const PartnerPatch = Type.Partial(
  Type.Object({ name: PARTNER_NAME, isActive: Type.Boolean(), ...settings }),
);
export const PartnerResponse = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  name: Type.String(),
  environment: Environment,
  isActive: Type.Boolean(),
  createdAt: timestamp(),
  ...settings,
});
export const PartnerList = Type.Object({ partners: Type.Array(PartnerResponse) });

export const KeyBody = Type.Object({
  name: Type.Optional(opaque('What the key is for')),
  expiresAt: Type.Optional(
    nullable(Type.String({ description: 'RFC 3339 time in the future; null: never' })),
  ),
});
const keyMembers = {
  keyId: Type.Integer(),
  name: nullable(Type.String()),
  createdAt: timestamp(),
  expiresAt: nullable(timestamp()),
};
export const IssuedKey = Type.Object({
  ...keyMembers,
  apiKey: Type.String({ description: 'Shown this once' }),
});
export const ApiKey = Type.Object({
  ...keyMembers,
  status: Type.Union([Type.Literal('active'), Type.Literal('revoked'), Type.Literal('expired')]),
  lastUsedAt: nullable(timestamp()),
});
export const KeyList = Type.Object({
  keys: Type.Array(ApiKey),
});

export const GamePatch = Type.Object({
  status: Type.Union([Type.Literal('ACTIVE'), Type.Literal('SUSPENDED')]),
});
export const GameQueue = Type.Object({
  readyBlocks: Type.Integer(),
  outcomesReady: Type.Integer(),
  consumed: Type.Integer(),
});
export const GameTotals = Type.Object({
  spins: Type.Integer(),
  wageredUsd: usd('Sum of wagers in the ledger'),
  paidOutUsd: usd('Sum of payouts in the ledger'),
  actualRtp: nullable(Type.Number({ description: 'Null before the first spin' })),
});
export const OperatorGame = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  ticketsRemaining: Type.Optional(
    Type.Integer({ description: 'Of a raffle: tickets that are not booked as sold' }),
  ),
  queue: GameQueue,
  totals: GameTotals,
});
const PRIZES_MAX = 1000;

export const RafflePrize = Type.Object({
  prizeName: opaque('What it is called in the response of a spin; not «No Win»'),
  prizeTier: Type.Integer({ minimum: 1, maximum: 6 }),
  valueUsd: usd('What it pays: above 0, with at most 6 decimals'),
  count: Type.Integer({ minimum: 1, maximum: MAX_POOL_SIZE, description: 'Tickets that win it' }),
});

export const RaffleBody = Type.Object({
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  ticketPriceUsd: usd('What a ticket costs: above 0, with at most 6 decimals'),
  poolSize: Type.Integer({ minimum: 1, maximum: MAX_POOL_SIZE, description: 'Tickets in all' }),
  prizes: Type.Array(RafflePrize, {
    minItems: 1,
    maxItems: PRIZES_MAX,
    description: 'The certified prize table; its counts sum to poolSize at the most, no-win tickets fill up',
  }),
});
export const RaffleResponse = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  ticketPriceUsd: usd('What a ticket costs'),
  ticketsRemaining: Type.Integer(),
});

export const PoolPrize = Type.Object({
  prizeName: Type.String(),
  prizeTier: Type.Integer(),
  valueUsd: Type.Number(),
  count: Type.Integer(),
});

export const PoolReveal = Type.Object(
  {
    seed: Type.String({ description: 'Hexadecimal, 32 bytes: the key of the shuffle' }),
    nonce: Type.String({ description: 'Hexadecimal, 32 bytes' }),
    order: Type.String({
      description: 'Base64: the ticket codes as they were dealt, 16 bits each, little endian',
    }),
  },
  { description: 'Null until the last ticket is sold' },
);

export const PoolResponse = Type.Object({
  gameConfigId: Type.Integer(),
  displayName: Type.String(),
  configName: Type.String(),
  status: Type.String(),
  ticketPriceUsd: Type.Number(),
  poolSize: Type.Integer(),
  prizes: Type.Array(PoolPrize, {
    description: 'The prize table; the ticket code of the n-th prize is n, that of no win 0',
  }),
  poolCommitment: nullable(
    Type.String({ description: 'Hexadecimal; null until the pool is sealed. Never changes after that' }),
  ),
  sealedAt: nullable(timestamp()),
  closedAt: nullable(timestamp()),
  reveal: nullable(PoolReveal),
});

export const BlocksBody = Type.Object({ count: Type.Integer({ minimum: 1, maximum: 100 }) });
export const BlocksAccepted = Type.Object({ gameConfigId: Type.Integer(), requested: Type.Integer() });
export const ParSheetPatch = Type.Object({ status: Type.Literal('RETIRED') });
export const OperatorParSheet = Type.Object({
  ...ParSheetResponse.properties,
  partnerId: Type.Integer(),
  status: Type.String(),
});

export const AdjustmentBody = Type.Object({
  amountUsd: usd('Added to the balance; not 0, at most 6 decimals, negative to take away'),
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept with the adjustment' }),
  requestId: opaque('Idempotency key; binds for ever'),
});
/** With what the path says. */
export const AdjustmentOrder = Type.Object({ playerId: opaque(''), ...AdjustmentBody.properties });
export const AdjustmentResponse = Type.Object({
  playerId: Type.String(),
  balanceUsd: usd('Balance of the player after the adjustment'),
  adjustmentId: Type.String(),
});

export const ResendBody = Type.Object({
  since: Type.String({ description: 'RFC 3339 time: deliveries that have failed since are sent again' }),
});
export const Resent = Type.Object({
  resent: Type.Integer({ description: 'Deliveries that are sent again' }),
});

export const AuditEntry = Type.Object({
  auditId: Type.Integer(),
  at: timestamp(),
  actor: Type.String(),
  action: Type.String(),
  subject: Type.String(),
  before: Type.Unknown(),
  after: Type.Unknown(),
});
export const AuditLog = Type.Object({
  entries: Type.Array(AuditEntry),
  ...pageMembers,
});

export type SpinBody = Static<typeof SpinBody>;
export type GameBody = Static<typeof GameBody>;
export type GamePatch = Static<typeof GamePatch>;
export type RaffleBody = Static<typeof RaffleBody>;
export type PartnerBody = Static<typeof PartnerBody>;
export type PartnerPatch = Static<typeof PartnerPatch>;
export type AdjustmentBody = Static<typeof AdjustmentBody>;
export type DisputeBody = Static<typeof DisputeBody>;
export type KeyBody = Static<typeof KeyBody>;

/** An amount of a request in micro-USD; undefined where it is finer than that, or beyond ±{@link MAX_MICROS}. */
export function amountMicros(usdAmount: number): number | undefined {
  const micros = usdToMicros(usdAmount);
  return micros === undefined || Math.abs(micros) > MAX_MICROS ? undefined : micros;
}
