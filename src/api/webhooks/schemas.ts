/** Webhooks: registrations, deliveries, and the events that are sent. */
import { type Static, Type } from '#typebox';
import { choice, nullable, pageMembers, timestamp, usd } from '../../domain/schema.js';
import { SandboxMark } from '../spins/sandbox.schemas.js';

/** What a webhook can subscribe to. */
export const EVENT_TYPES = [
  'spin.large_win',
  'settlement.report_ready',
  'block.low_reserve',
  'api_key.expiring',
] as const;

export const WebhookEvent = choice(EVENT_TYPES);

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

export type WebhookBody = Static<typeof WebhookBody>;

export const WebhookRegistered = Type.Object({
  ...webhookMembers,
  secret: Type.String({ description: 'Signs the deliveries; shown this once' }),
});

export const Webhook = Type.Object(webhookMembers);

export const WebhookPatch = Type.Partial(
  Type.Object({ ...WebhookBody.properties, isActive: Type.Boolean() }),
);

export const RotatedSecret = Type.Object({
  id: Type.Integer(),
  secret: Type.String({ description: 'Signs the deliveries from now on; shown this once' }),
  previousSecretExpiresAt: timestamp(),
});

export const TestBody = Type.Object({ event: WebhookEvent });

export const TestSent = Type.Object({ eventId: Type.String(), deliveryId: Type.String() });

export const EventFeedQuery = Type.Object({
  after: Type.Optional(Type.String({ description: 'Id of an event: those after it' })),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Events in an answer' }),
});

export const EndpointState = choice(
  ['ok', 'failing', 'inactive'],
  'failing: the newest attempt failed; inactive: nothing is sent',
);

export const EndpointHealth = Type.Object(
  {
    state: EndpointState,
    reason: nullable(Type.String({ description: 'Why it is not ok' })),
    failingSince: nullable(
      Type.String({ format: 'date-time', description: 'Every attempt since then has failed' }),
    ),
    pending: Type.Integer({ description: 'Deliveries that wait, counted up to 10,000' }),
    restsUntil: nullable(
      Type.String({
        format: 'date-time',
        description: 'No attempt begins before; null: nothing holds it back',
      }),
    ),
  },
  { description: "How the webhook's receiver does" },
);

export const listedWebhookMembers = { ...webhookMembers, health: EndpointHealth };

export const ListedWebhook = Type.Object(listedWebhookMembers);

export const WebhookList = Type.Object({ webhooks: Type.Array(ListedWebhook) });

export const DeliveryStatus = choice(
  ['pending', 'delivered', 'failed'],
  'pending: it is tried again; failed: no attempts are left',
);

export const Delivery = Type.Object({
  id: Type.String(),
  event: Type.String(),
  status: DeliveryStatus,
  attempts: Type.Integer({ description: 'Attempts whose result is known' }),
  maxAttempts: Type.Integer(),
  createdAt: timestamp(),
  lastAttemptAt: nullable(timestamp()),
  nextAttemptAt: nullable(
    Type.String({
      format: 'date-time',
      description: 'No sooner; null: it has ended, or its webhook is inactive',
    }),
  ),
  responseStatus: nullable(Type.Integer({ description: 'Of the last attempt; null: no answer' })),
});

export const DeliveryPage = Type.Object({
  deliveries: Type.Array(Delivery),
  ...pageMembers,
});

const eventOf = <Data extends Type.TProperties>(event: string, data: Data) =>
  Type.Object({
    id: Type.String({ description: 'The same in every attempt, and for every webhook' }),
    event: Type.Literal(event),
    createdAt: timestamp(),
    partnerId: Type.Integer(),
    data: Type.Object(data),
    test: Type.Optional(Type.Boolean({ description: 'True where `POST /webhooks/{id}/test` made it' })),
  });

/** What is sent to webhooks, by event type. */
export const EVENTS = {
  'spin.large_win': eventOf('spin.large_win', {
    spinId: Type.String({ description: 'Of a spin; of a blackjack round, its roundId' }),
    roundId: Type.Optional(Type.String({ description: 'Of a blackjack round' })),
    gameId: Type.Integer(),
    playerId: Type.String(),
    payoutUsd: usd("Above the partner's threshold"),
    prizeTier: Type.Integer({ minimum: 0, maximum: 6, description: '0 of a blackjack round' }),
    requestId: Type.Optional(Type.String()),
    sandbox: SandboxMark,
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
  'api.version.deprecated': eventOf('api.version.deprecated', {
    version: Type.String(),
    deprecatedAt: timestamp(),
    sunsetAt: timestamp(),
    successor: nullable(Type.String()),
    migrationUrl: nullable(Type.String()),
  }),
} satisfies Record<(typeof EVENT_TYPES)[number] | 'api.version.deprecated', Type.TSchema>;

export const Event = Type.Union(Object.values(EVENTS), {
  description: 'What is sent to webhooks; `event` tells which',
});

export const StatusOfGame = choice(
  ['ACTIVE', 'SUSPENDED', 'CLOSED', 'DEALING_OFF'],
  '`DEALING_OFF`: a switch of the operator is off',
);
export const GameStatusReason = choice(
  ['OPERATOR', 'RESTORED', 'VOIDED', 'SOLD_OUT', 'SWITCH', 'PARTNER_SWITCH'],
  'Why it stops or goes on; more may come',
);

/** Of the feed only: no webhook gets it. */
export const GameStatusChanged = eventOf('game.status_changed', {
  gameId: Type.Integer(),
  status: StatusOfGame,
  reason: GameStatusReason,
});

export const FeedEvent = Type.Union([...Object.values(EVENTS), GameStatusChanged], {
  description: 'What the feed of events shows; `event` tells which',
});

export const EventFeed = Type.Object({
  events: Type.Array(FeedEvent),
  nextCursor: nullable(
    Type.String({ description: 'Id of the last event for `after`; null: there are no more' }),
  ),
});

export const ResendBody = Type.Object({
  since: Type.String({ description: 'RFC 3339 time: deliveries that have failed since are sent again' }),
});

export const Resent = Type.Object({
  resent: Type.Integer({ description: 'Deliveries that are sent again' }),
});
