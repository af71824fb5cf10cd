/** Webhooks: event types, ids and bodies of events, and the signatures of attempts (docs/contract.md §13). */
import { createHmac, type KeyObject } from 'node:crypto';
import { type Static, Type } from '#typebox';
import type { AdjustmentData } from './adjustment.js';
import { exactJson, type WithSums } from './exactJson.js';
import { choice, nullable, timestamp } from './schema.js';
import { EVENT_TYPES, type EVENTS } from './webhookEvents.js';

export type SubscribedEventType = (typeof EVENT_TYPES)[number];
export type EventType = keyof EventData;

/** Events that go only to the operator by e-mail, not to partners. */
export type OperatorEvent = 'program.check_failed';
export type WebhookEventType = keyof typeof EVENTS;

export const IN_FEED: readonly EventType[] = [...EVENT_TYPES, 'api.version.deprecated'];

/** Events that every active webhook gets, whatever it subscribes to (docs/contract.md §16). */
export const SENT_TO_ALL: ReadonlySet<EventType> = new Set(['api.version.deprecated']);

/**
 * Reason why a game stops or resumes: a change of its own status, its last ticket, the dealing switch for all
 * games, or the dealing switch for its partner.
 */
export type GameStatusReason = EventData['game.status_changed']['reason'];

type Sent<Type extends WebhookEventType> = Readonly<Static<(typeof EVENTS)[Type]>['data']>;

/** Data of each event, with the members in the order in which they are sent. */
export interface EventData {
  'spin.large_win': Sent<'spin.large_win'>;
  'settlement.report_ready': WithSums<Sent<'settlement.report_ready'>, 'totalSpins'>;
  'block.low_reserve': Sent<'block.low_reserve'>;
  'api_key.expiring': Sent<'api_key.expiring'>;
  'player.adjusted': AdjustmentData;
  'api.version.deprecated': Sent<'api.version.deprecated'>;
  'game.status_changed': Sent<'game.status_changed'>;
  'webhook.deactivated': {
    readonly webhookId: number;
    readonly url: string;
    readonly failingSince: string;
  };
  'settlement.overdue': {
    readonly reportDate: string;
    /** Number of partners without a complete settlement report of the day. */
    readonly partners: number;
  };
  'program.check_failed': {
    /** Host name of the process whose files were checked. */
    readonly host: string;
    readonly version: string;
    readonly manifest: string | null;
    readonly differing: number;
    /** Paths of differing files, at most the first hundred. */
    readonly paths: readonly string[];
  };
}

/** An event of a partner of which the partner's webhooks are to be notified. */
export type NewEvent = {
  [Type in Exclude<EventType, OperatorEvent>]: {
    readonly event: Type;
    readonly partnerId: number;
    readonly createdAt: Date;
    readonly data: EventData[Type];
    /** Recipient of the e-mail instead of the partner's contact. */
    readonly recipient?: string;
    /** False if the e-mail is sent for another event with the same cause. */
    readonly isEmailed?: boolean;
  };
}[Exclude<EventType, OperatorEvent>];

export const SAMPLE_DATA: { readonly [Type in SubscribedEventType]: EventData[Type] } = {
  'spin.large_win': {
    spinId: '00000000000000000000000000000000',
    gameId: 1,
    playerId: 'test-player',
    payoutUsd: 125.5,
    prizeTier: 6,
  },
  'settlement.report_ready': {
    reportDate: '2026-01-01',
    revision: 1,
    integrityHash: '0'.repeat(64),
    totalSpins: 0,
    ggrUsd: 0,
  },
  'block.low_reserve': { gameId: 1, readyBlocks: 1, minReadyBlocks: 2 },
  'api_key.expiring': { keyId: 1, name: 'test', expiresAt: '2026-01-31T00:00:00.000Z', daysLeft: 30 },
  'player.adjusted': {
    entryId: '00000000000000000000000000000000',
    kind: 'adjustment',
    playerId: 'test-player',
    amountUsd: -5.5,
    balanceAfterUsd: 1043.75,
    reason: 'test',
  },
  'game.status_changed': { gameId: 1, status: 'SUSPENDED', reason: 'OPERATOR' },
};

/** Builds the body of an event, which has the same bytes on every attempt. */
export const eventBody = (
  id: string,
  { event, createdAt, partnerId, data }: NewEvent,
  isTest = false,
): string =>
  exactJson({
    id,
    event,
    createdAt: createdAt.toISOString(),
    partnerId,
    data,
    ...(isTest ? { test: true } : {}),
  });

/** Builds the body of an event that only the operator gets. */
export const operatorEventBody = <Type extends OperatorEvent>(
  id: string,
  event: Type,
  createdAt: Date,
  data: EventData[Type],
): string => exactJson({ id, event, createdAt: createdAt.toISOString(), data });

/** Prefix of a webhook secret, which is followed by 32 bytes in base64. */
const SECRET_PREFIX = 'whsec_';

/** @param bytes 32 random bytes */
export const webhookSecret = (bytes: Buffer): string => SECRET_PREFIX + bytes.toString('base64');

export const hmacSha256 = (key: Buffer | string | KeyObject, data: Buffer | string): Buffer =>
  createHmac('sha256', key).update(data).digest();

/** Signature of an attempt for the service's own header, keyed with the text of the secret. */
export const bodySignature = (secret: string, body: Buffer | string): string =>
  `sha256=${hmacSha256(secret, body).toString('hex')}`;

/** Signature of an attempt as defined by Standard Webhooks, keyed with the decoded bytes of the secret. */
export function standardSignature(
  secret: string,
  { id, timestampSeconds, body }: { id: string; timestampSeconds: number; body: Buffer | string },
): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  const data = Buffer.concat([Buffer.from(`${id}.${timestampSeconds}.`), Buffer.from(body)]);
  return `v1,${hmacSha256(key, data).toString('base64')}`;
}

export interface Attempt {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly event: string;
  /** Secrets with which the attempt is signed, newest first. */
  readonly secrets: readonly [string, ...string[]];
  readonly body: string;
  /** Number of the delivery attempt, from 1. */
  readonly attempt: number;
}

/** @param brand used in the names of the service's own headers */
export function attemptHeaders(
  brand: string,
  { deliveryId, eventId, event, secrets, body, attempt }: Attempt,
  timestampSeconds: number,
): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'User-Agent': `${brand}-Webhooks/1`,
    [`X-${brand}-Signature`]: bodySignature(secrets[0], body),
    [`X-${brand}-Event`]: event,
    [`X-${brand}-Delivery-Id`]: deliveryId,
    [`X-${brand}-Attempt`]: String(attempt),
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': secrets
      .map((secret) => standardSignature(secret, { id: eventId, timestampSeconds, body }))
      .join(' '),
  };
}

export const webhookMembers = {
  id: Type.Integer(),
  url: Type.String(),
  events: Type.Array(Type.String()),
  isActive: Type.Boolean(),
  createdAt: timestamp(),
};

export const Webhook = Type.Object(webhookMembers);

export const EndpointState = choice(
  ['ok', 'failing', 'inactive'],
  'failing: the last attempt failed; inactive: no events are sent',
);

/** Limits of concurrent attempts, which are those of each delivering process. */
export const ConcurrencyLimit = choice(
  ['partner-concurrency', 'webhook-concurrency'],
  'partner-concurrency: the partner has 64 attempts in progress, the maximum over all its webhooks; webhook-concurrency: the webhook has 4, the maximum of a slow or failing receiver',
);

export const EndpointHealth = Type.Object(
  {
    state: EndpointState,
    reason: nullable(Type.String({ description: 'Reason why the state is not ok' })),
    failingSince: nullable(
      Type.String({ format: 'date-time', description: 'Time since which every attempt has failed' }),
    ),
    pending: Type.Integer({ description: 'Number of waiting deliveries, counted up to 10,000' }),
    limitedBy: nullable(ConcurrencyLimit),
    restsUntil: nullable(
      Type.String({
        format: 'date-time',
        description: 'Time before which no attempt begins; null if attempts may begin now',
      }),
    ),
  },
  { description: "Health of the webhook's receiver" },
);

export const DeliveryStatus = choice(
  ['pending', 'delivered', 'failed'],
  'pending: at least one more attempt follows; failed: no attempts are left',
);

export const Delivery = Type.Object({
  id: Type.String(),
  eventId: Type.String({ description: 'Id of the event that the delivery sends, as in `GET /events`' }),
  event: Type.String(),
  status: DeliveryStatus,
  attempts: Type.Integer({ description: 'Number of attempts with a known result' }),
  maxAttempts: Type.Integer(),
  createdAt: timestamp(),
  lastAttemptAt: nullable(timestamp()),
  nextAttemptAt: nullable(
    Type.String({
      format: 'date-time',
      description:
        'Earliest time of the next attempt; null if the delivery has ended or its webhook is inactive',
    }),
  ),
  responseStatus: nullable(
    Type.Integer({
      description: 'HTTP status of the response to the last attempt; null if there was no response',
    }),
  ),
});
