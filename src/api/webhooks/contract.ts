/** Schemas and operations of webhooks, deliveries and the event feed. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { choice, nullable, Page, pageMembers, partnerFilter, timestamp } from '../../domain/schema.js';
import { Delivery, EndpointHealth, Webhook, webhookMembers } from '../../domain/webhook.js';
import { EVENT_TYPES, EVENTS } from '../../domain/webhookEvents.js';
import { EVENT_REFERENCES } from '../contract/deliveredEvents.js';
import { endpointsOf } from '../contract/endpoint.js';
import { LISTED_WEBHOOK, WEBHOOK } from '../contract/examples.js';

const { partner, operator } = endpointsOf('Webhooks');

export const WebhookEvent = choice(EVENT_TYPES);

const WEBHOOK_URL = Type.String({
  description: 'Public https address. Sandbox accounts may also use http://localhost on any port.',
});

export const WebhookBody = Type.Object({
  url: WEBHOOK_URL,
  events: Type.Array(WebhookEvent, { minItems: 1, uniqueItems: true }),
});

export type WebhookBody = Static<typeof WebhookBody>;

export const WebhookRegistered = Type.Object({
  ...webhookMembers,
  secret: Type.String({ description: 'Secret that signs the deliveries, shown only in this response' }),
});

export const WebhookPatch = Type.Partial(
  Type.Object({ ...WebhookBody.properties, isActive: Type.Boolean() }),
);

export const RotatedSecret = Type.Object({
  id: Type.Integer(),
  secret: Type.String({
    description: 'Secret that signs the deliveries from now on, shown only in this response',
  }),
  previousSecretExpiresAt: timestamp(),
});

export const TestBody = Type.Object({ event: WebhookEvent });

export const TestSent = Type.Object({ eventId: Type.String(), deliveryId: Type.String() });

export const EventFeedQuery = Type.Object({
  after: Type.Optional(Type.String({ description: 'Id of an event. The response has the events after it.' })),
  limit: Type.Integer({
    minimum: 1,
    maximum: 100,
    default: 20,
    description: 'Number of events in a response',
  }),
});

export const listedWebhookMembers = { ...webhookMembers, health: EndpointHealth };

export const ListedWebhook = Type.Object(listedWebhookMembers);

export const WebhookList = Type.Object({ webhooks: Type.Array(ListedWebhook) });

export const DeliveryPage = Type.Object({
  deliveries: Type.Array(Delivery),
  ...pageMembers,
});

export const Event = Type.Union(Object.values(EVENTS), {
  description: 'Event that is sent to webhooks. `event` identifies its type.',
});

export const FeedEvent = Type.Union(Object.values(EVENTS), {
  description: 'Event in the event feed. `event` identifies its type.',
});

export const EventFeed = Type.Object({
  events: Type.Array(FeedEvent),
  nextCursor: nullable(
    Type.String({
      description:
        'Value of `after` for the next page: the id of the last event. Null if there are no more events.',
    }),
  ),
});

export const ResendBody = Type.Object({
  since: Type.String({
    description: 'RFC 3339 time. Deliveries that have failed since this time are sent again.',
  }),
});

export const Resent = Type.Object({
  resent: Type.Integer({ description: 'Number of deliveries that are sent again' }),
});

/** Example text only: all bytes of this secret are 0. */
const SECRET = `whsec_${'A'.repeat(43)}=`;

export const listEvents = partner.get('listEvents', '/events', {
  summary: "List the account's events of the last 30 days, oldest first",
  description:
    'Lists all events in the order of their commits, whether or not a webhook subscribes to them. An event never appears before an event that was already read. Test events are not listed.',
  query: EventFeedQuery,
  response: EventFeed,
  hasSums: true,
  example: { events: [EVENT_REFERENCES['spin.large_win']!.body], nextCursor: null },
});

export const updateWebhook = partner.patch('updateWebhook', '/webhooks/{id}', {
  summary: 'Change a webhook',
  description:
    'Omitted members keep their values. Deliveries of an inactive webhook wait. The service deactivates a webhook that fails for a long time. `isActive: true` reactivates the webhook, and the waiting deliveries are sent.',
  body: WebhookPatch,
  ownCheck: true,
  response: Webhook,
  errors: [ERRORS.invalidWebhookUrl, ERRORS.webhookDestinationDisallowed, ERRORS.invalidWebhookEvents],
  bodyExample: { events: ['spin.large_win'] },
  example: { ...WEBHOOK, events: ['spin.large_win'] },
});

export const rotateWebhookSecret = partner.post('rotateWebhookSecret', '/webhooks/{id}/rotate-secret', {
  summary: 'Replace the secret of a webhook',
  description:
    'Returns the new secret, which is shown only once. For 24 hours `webhook-signature` has two signatures, separated by a space: one with the new secret and one with the old secret. The header `X-…-Signature` uses the new secret only, so check `webhook-signature` before you rotate.',
  response: RotatedSecret,
  example: { id: 1, secret: SECRET, previousSecretExpiresAt: '2026-11-23T04:14:04.260Z' },
});

export const testWebhook = partner.post('testWebhook', '/webhooks/{id}/test', {
  summary: 'Send a test event to a webhook',
  description:
    'Sends an event with example data and `test: true`, whether or not the webhook subscribes to it. The delivery is signed and retried like any other delivery. The list of deliveries of the webhook shows its result.',
  body: TestBody,
  ownCheck: true,
  status: 202,
  response: TestSent,
  errors: [ERRORS.fieldMissing, ERRORS.invalidWebhookEvents],
  bodyExample: { event: 'spin.large_win' },
  example: {
    eventId: 'evt_01a201760794207154d366a13cb3032f',
    deliveryId: 'dlv_01a201760794f2925461f5ca8df107b1',
  },
});

export const resendOwnDelivery = partner.post(
  'resendOwnDelivery',
  '/webhooks/{id}/deliveries/{deliveryId}/resend',
  {
    summary: 'Send a delivery of the webhook again, whatever its status',
    description: 'The delivery gets 5 new attempts. It keeps its id and the id of its event.',
    status: 202,
    response: Resent,
    example: { resent: 1 },
  },
);

export const registerWebhook = partner.post('registerWebhook', '/webhooks', {
  summary: 'Register a webhook for events',
  description:
    'The URL must be a public https address; sandbox accounts may use `http://localhost`. The signing secret is shown only in this response.',
  body: WebhookBody,
  ownCheck: true,
  status: 201,
  response: WebhookRegistered,
  errors: [
    ERRORS.fieldMissing,
    ERRORS.invalidWebhookUrl,
    ERRORS.webhookDestinationDisallowed,
    ERRORS.invalidWebhookEvents,
    ERRORS.capReached,
  ],
  bodyExample: { url: WEBHOOK.url, events: WEBHOOK.events },
  example: { ...WEBHOOK, secret: SECRET },
});

export const listWebhooks = partner.get('listWebhooks', '/webhooks', {
  summary: "List the partner's webhooks and the health of their receivers",
  description:
    'Lists webhooks without their secrets. Deleted webhooks are not listed. `health` shows whether the receiver accepts deliveries. After 50 failures in a row a receiver gets single attempts, at most a minute apart, until an attempt succeeds.',
  response: WebhookList,
  example: { webhooks: [LISTED_WEBHOOK] },
});

export const deleteWebhook = partner.delete('deleteWebhook', '/webhooks/{id}', {
  summary: 'Delete a webhook',
  description:
    'The webhook gets no more events, and waiting deliveries are discarded. Operators can still read the history of its deliveries.',
});

export const listDeliveries = partner.get('listDeliveries', '/webhooks/{id}/deliveries', {
  summary: "List a webhook's deliveries, newest first",
  description:
    'Shows the event, the number of attempts and the last response of each delivery. After 5 failed attempts a delivery is `failed`.',
  query: Page,
  response: DeliveryPage,
  example: {
    deliveries: [
      {
        id: 'dlv_01a201760794f2925461f5ca8df107b1',
        eventId: 'evt_01a201760794207154d366a13cb3032f',
        event: 'spin.large_win',
        status: 'delivered',
        attempts: 1,
        maxAttempts: 5,
        createdAt: '2026-11-22T04:14:02.132Z',
        lastAttemptAt: '2026-11-22T04:14:02.141Z',
        nextAttemptAt: null,
        responseStatus: 204,
      },
    ],
    page: 1,
    limit: 20,
    total: 1,
  },
});

export const resendFailed = operator.post('resendFailed', '/webhooks/resend', {
  summary: 'Send all deliveries again that have failed since a given time',
  description: 'Use this after an outage of a receiver. It resends the failed deliveries of all partners.',
  body: ResendBody,
  status: 202,
  response: Resent,
  bodyExample: { since: '2026-11-22T00:00:00Z' },
  example: { resent: 12 },
});

export const resendDelivery = operator.post('resendDelivery', '/deliveries/{id}/resend', {
  summary: 'Send a delivery again, whatever its status',
  description: 'The delivery gets 5 new attempts, even if it was already delivered.',
  status: 202,
  response: Resent,
  errors: [ERRORS.webhookNotFound],
  example: { resent: 1 },
});

export const listPartnerWebhooks = operator.get('listPartnerWebhooks', '/partners/{id}/webhooks', {
  ...listWebhooks,
  summary: "List a partner's webhooks and the health of their receivers",
  description: 'Lists the webhooks without their secrets, as their partner reads them.',
});

export const DeliveriesQuery = Type.Object({
  ...Page.properties,
  ...partnerFilter,
  status: Type.Optional(
    Type.String({
      pattern: '^(pending|delivered|failed)$',
      description: 'Only deliveries with this status: `pending`, `delivered` or `failed`. Default: `failed`.',
    }),
  ),
});

export const DeliveryAttempt = Type.Object({
  attempt: Type.Integer({ description: 'Number of the attempt, from 1' }),
  at: timestamp(),
  durationMs: Type.Integer({ description: 'Duration of the attempt, in ms' }),
  responseStatus: nullable(
    Type.Integer({ description: 'HTTP status of the response; null if there was no response' }),
  ),
  error: nullable(Type.String({ description: 'Reason why the attempt failed; null if it succeeded' })),
  responseStart: nullable(
    Type.String({ description: "First 200 bytes of the response's body; null if there was none" }),
  ),
});

export const OperatorDelivery = Type.Object({
  ...Delivery.properties,
  partnerId: Type.Integer(),
  webhookId: Type.Integer(),
  url: Type.String(),
  body: Type.String({ description: 'Body of the delivery, in the format of version 1 of the API' }),
  lastError: nullable(Type.String({ description: 'Reason why the last attempt failed' })),
  attemptLog: Type.Array(DeliveryAttempt, {
    description: 'The newest 20 attempts, oldest first. Attempts before version 1.5.0 are not listed.',
  }),
});

export const OperatorDeliveries = Type.Object({ deliveries: Type.Array(OperatorDelivery), ...pageMembers });

export const listAllDeliveries = operator.get('listAllDeliveries', '/deliveries', {
  summary: 'List the deliveries of all partners by status, with their bodies and errors',
  description:
    'Lists deliveries by their newest attempt, newest first. Only the newest 10,000 deliveries are listed.',
  query: DeliveriesQuery,
  response: OperatorDeliveries,
  example: {
    deliveries: [
      {
        id: 'dlv_019abcde0123456789abcdef01234567',
        eventId: 'evt_019abcde0123456789abcdef01234567',
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
        body: '{"id":"evt_019abcde0123456789abcdef01234567","event":"spin.large_win"}',
        lastError: 'answered 503',
        attemptLog: [
          {
            attempt: 5,
            at: '2026-11-22T05:35:01.783Z',
            durationMs: 84,
            responseStatus: 503,
            error: 'answered 503',
            responseStart: 'Service unavailable: the queue is full',
          },
        ],
      },
    ],
    page: 1,
    limit: 20,
    total: 1,
  },
});
