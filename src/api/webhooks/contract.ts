/** Schemas and operations of webhooks, deliveries and the event feed. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { choice, nullable, PATH, Page, pageMembers, partnerFilter, timestamp } from '../../domain/schema.js';
import { Delivery, EndpointHealth, Webhook, webhookMembers } from '../../domain/webhook.js';
import { EVENT_TYPES, EVENTS, GameStatusChanged } from '../../domain/webhookEvents.js';
import { EVENT_REFERENCES } from '../contract/deliveredEvents.js';
import { endpoint } from '../contract/endpoint.js';
import { LISTED_WEBHOOK, WEBHOOK } from '../contract/examples.js';

export const WebhookEvent = choice(EVENT_TYPES);

const WEBHOOK_URL = Type.String({
  description: 'A public https address; in the sandbox also http://localhost on any port',
});

export const WebhookBody = Type.Object({
  url: WEBHOOK_URL,
  events: Type.Array(WebhookEvent, { minItems: 1, uniqueItems: true }),
});

export type WebhookBody = Static<typeof WebhookBody>;

export const WebhookRegistered = Type.Object({
  ...webhookMembers,
  secret: Type.String({ description: 'Signs the deliveries; shown this once' }),
});

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

export const listedWebhookMembers = { ...webhookMembers, health: EndpointHealth };

export const ListedWebhook = Type.Object(listedWebhookMembers);

export const WebhookList = Type.Object({ webhooks: Type.Array(ListedWebhook) });

export const DeliveryPage = Type.Object({
  deliveries: Type.Array(Delivery),
  ...pageMembers,
});

export const Event = Type.Union(Object.values(EVENTS), {
  description: 'What is sent to webhooks; `event` tells which',
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

/** Example text only: all bytes of this secret are 0. */
const SECRET = `whsec_${'A'.repeat(43)}=`;
const NOT_OWN = [ERRORS.webhookNotFound, ERRORS.webhookForeign];

export const listEvents = endpoint(
  {
    method: 'get',
    path: '/events',
    operationId: 'listEvents',
    tag: 'Webhooks',
    summary: 'The events of the account of the last 30 days, the oldest first',
    scope: 'partner',
    query: EventFeedQuery,
    status: 200,
    response: EventFeed,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'Whether or not a webhook subscribes to them, in the order in which they were committed: none ever appears before one that was read. Test events are not in it.',
    response: { events: [EVENT_REFERENCES['spin.large_win']!.body], nextCursor: null },
  },
);

export const updateWebhook = endpoint(
  {
    method: 'patch',
    path: '/webhooks/{id}',
    params: { id: PATH.webhookId },
    operationId: 'updateWebhook',
    tag: 'Webhooks',
    summary: 'Change a webhook; what is not sent stays. Deliveries of one that is inactive wait',
    scope: 'partner',
    body: WebhookPatch,
    ownCheck: true,
    status: 200,
    response: Webhook,
    errors: [
      ...NOT_OWN,
      ERRORS.invalidWebhookUrl,
      ERRORS.webhookDestinationDisallowed,
      ERRORS.invalidWebhookEvents,
    ],
    failure: ERRORS.internal,
  },
  {
    description:
      'A webhook that failed for long is set inactive by the service; `isActive: true` takes it up again, and what waited is delivered.',
    request: { events: ['spin.large_win'] },
    response: { ...WEBHOOK, events: ['spin.large_win'] },
  },
);

export const rotateWebhookSecret = endpoint(
  {
    method: 'post',
    path: '/webhooks/{id}/rotate-secret',
    params: { id: PATH.webhookId },
    operationId: 'rotateWebhookSecret',
    tag: 'Webhooks',
    summary: 'Give a webhook a new secret, shown this once; the old one signs, too, for 24 hours',
    scope: 'partner',
    status: 200,
    response: RotatedSecret,
    errors: NOT_OWN,
    failure: ERRORS.internal,
  },
  {
    description:
      'For 24 hours `webhook-signature` has two signatures, separated by a space: by the new and by the old secret. The other signature header uses the new one.',
    response: { id: 1, secret: SECRET, previousSecretExpiresAt: '2026-11-23T04:14:04.260Z' },
  },
);

export const testWebhook = endpoint(
  {
    method: 'post',
    path: '/webhooks/{id}/test',
    params: { id: PATH.webhookId },
    operationId: 'testWebhook',
    tag: 'Webhooks',
    summary: 'Send a webhook an event with made-up data and `test: true`, whether or not it subscribes to it',
    scope: 'partner',
    body: TestBody,
    ownCheck: true,
    status: 202,
    response: TestSent,
    errors: [ERRORS.fieldMissing, ERRORS.invalidWebhookEvents, ...NOT_OWN],
    failure: ERRORS.internal,
  },
  {
    description:
      'The delivery is signed and repeated like any other. Read its result in the deliveries of the webhook.',
    request: { event: 'spin.large_win' },
    response: {
      eventId: 'evt_01a201760794207154d366a13cb3032f',
      deliveryId: 'dlv_01a201760794f2925461f5ca8df107b1',
    },
  },
);

export const resendOwnDelivery = endpoint(
  {
    method: 'post',
    path: '/webhooks/{id}/deliveries/{deliveryId}/resend',
    params: { id: PATH.webhookId, deliveryId: PATH.deliveryId },
    operationId: 'resendOwnDelivery',
    tag: 'Webhooks',
    summary: 'Send a delivery of the webhook again, whatever became of it',
    scope: 'partner',
    status: 202,
    response: Resent,
    errors: [...NOT_OWN, ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description: 'The delivery starts again with 5 attempts. It keeps its id and the id of its event.',
    response: { resent: 1 },
  },
);

export const registerWebhook = endpoint(
  {
    method: 'post',
    path: '/webhooks',
    operationId: 'registerWebhook',
    tag: 'Webhooks',
    summary: 'Register a URL for events; its signing secret is shown this once',
    scope: 'partner',
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
    failure: ERRORS.internal,
  },
  {
    description:
      'The URL must be a public https address; sandbox accounts may use `http://localhost`. The answer shows the signing secret, which is never shown again.',
    request: { url: WEBHOOK.url, events: WEBHOOK.events },
    response: { ...WEBHOOK, secret: SECRET },
  },
);

export const listWebhooks = endpoint(
  {
    method: 'get',
    path: '/webhooks',
    operationId: 'listWebhooks',
    tag: 'Webhooks',
    summary: "List the partner's webhooks and how their receivers do, without their secrets",
    scope: 'partner',
    status: 200,
    response: WebhookList,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'Deleted webhooks are not listed. `health` says whether the receiver takes deliveries. One that fails 50 times in a row gets single attempts, at most a minute apart, until one succeeds.',
    response: { webhooks: [LISTED_WEBHOOK] },
  },
);

export const deleteWebhook = endpoint(
  {
    method: 'delete',
    path: '/webhooks/{id}',
    params: { id: PATH.webhookId },
    operationId: 'deleteWebhook',
    tag: 'Webhooks',
    summary: 'Delete a webhook: it gets nothing any more',
    scope: 'partner',
    status: 204,
    errors: [ERRORS.webhookNotFound, ERRORS.webhookForeign],
    failure: ERRORS.internal,
  },
  {
    description: 'Deliveries that wait are given up. The history of its deliveries stays with the operator.',
  },
);

export const listDeliveries = endpoint(
  {
    method: 'get',
    path: '/webhooks/{id}/deliveries',
    params: { id: PATH.webhookId },
    operationId: 'listDeliveries',
    tag: 'Webhooks',
    summary: 'The deliveries of a webhook, newest first',
    scope: 'partner',
    query: Page,
    status: 200,
    response: DeliveryPage,
    errors: [ERRORS.webhookNotFound, ERRORS.webhookForeign],
    failure: ERRORS.internal,
  },
  {
    description:
      'Shows for each delivery how often it was tried and what the last answer was. A delivery is tried 5 times, then it is `failed`.',
    response: {
      deliveries: [
        {
          id: 'dlv_01a201760794f2925461f5ca8df107b1',
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
  },
);

export const resendFailed = endpoint(
  {
    method: 'post',
    path: '/webhooks/resend',
    operationId: 'resendFailed',
    tag: 'Webhooks',
    summary: 'Send all deliveries again that have failed since a time',
    scope: 'operator',
    body: ResendBody,
    status: 202,
    response: Resent,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'For the time after an outage of a receiver: deliveries of all partners that have failed.',
    request: { since: '2026-11-22T00:00:00Z' },
    response: { resent: 12 },
  },
);

export const resendDelivery = endpoint(
  {
    method: 'post',
    path: '/deliveries/{id}/resend',
    params: { id: PATH.deliveryId },
    operationId: 'resendDelivery',
    tag: 'Webhooks',
    summary: 'Send a delivery again, whatever became of it',
    scope: 'operator',
    status: 202,
    response: Resent,
    errors: [ERRORS.notFound, ERRORS.webhookNotFound],
    failure: ERRORS.internal,
  },
  {
    description: 'The delivery starts again with 5 attempts, also where it had been delivered.',
    response: { resent: 1 },
  },
);

export const listPartnerWebhooks = endpoint(
  {
    ...listWebhooks,
    operationId: 'listPartnerWebhooks',
    path: '/partners/{id}/webhooks',
    params: { id: PATH.partnerId },
    summary: 'The webhooks of a partner and how their receivers do, without their secrets',
    scope: 'operator',
    errors: [...listWebhooks.errors, ERRORS.partnerNotFound],
  },
  { ...listWebhooks.shown, description: 'As their partner reads them.' },
);

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
