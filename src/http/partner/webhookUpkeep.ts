/** What partners do with a webhook after its registration: change it, rotate its secret, test it, send again (docs/contract.md §13). */
import { randomBytes } from 'node:crypto';
import { ApiError, ERRORS } from '../../domain/errors.js';
import {
  PATH,
  Resent,
  RotatedSecret,
  TestBody,
  TestSent,
  Webhook,
  WebhookPatch,
} from '../../domain/requests.js';
import { EVENT_TYPES, webhookSecret } from '../../domain/webhook.js';
import { check, type JsonObject } from '../body.js';
import { pathId, type Route } from '../route.js';
import {
  checked,
  DELIVERY_ID,
  SECRET_BYTES,
  type WebhookServices,
  webhookOf,
  webhookRefused,
} from './webhooks.js';

const PREVIOUS_SECRET_MS = 86_400_000;

/** The webhook that a path names. @throws ApiError where the partner has no such webhook */
async function found({ store }: WebhookServices, partnerId: number, text: string): Promise<number> {
  const id = pathId(text);
  const state = id === undefined ? 'missing' : await store.webhookState(partnerId, id);
  if (id === undefined || state !== 'found') throw webhookRefused(state === 'foreign' ? state : 'missing');
  return id;
}

const REFUSALS = [ERRORS.webhookNotFound, ERRORS.webhookForeign];

export const webhookUpkeepRoutes = (services: WebhookServices): Route[] => [
  ...changingRoutes(services),
  ...sendingRoutes(services),
];

const changingRoutes = (services: WebhookServices): Route[] => [
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
      ...REFUSALS,
      ERRORS.invalidWebhookUrl,
      ERRORS.webhookDestinationDisallowed,
      ERRORS.invalidWebhookEvents,
    ],
    failure: ERRORS.internal,
    async handle({ partner, params, body }) {
      const id = await found(services, partner.partnerId, params.id!);
      const { url, events } = await checked(body, (text) => services.judgeUrl(text, partner.environment), []);
      const { isActive } = body;
      if (isActive !== undefined && typeof isActive !== 'boolean') {
        const details = [{ path: '/isActive', message: 'must be a boolean' }];
        throw new ApiError(ERRORS.validationFailed, { details });
      }
      const row = await services.store.updateWebhook(id, { url, events, isActive });
      // It may have been deleted in between.
      if (row === undefined) throw webhookRefused('missing');
      return webhookOf(row);
    },
  },
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
    errors: REFUSALS,
    failure: ERRORS.internal,
    async handle({ partner, params }) {
      const id = await found(services, partner.partnerId, params.id!);
      const secret = webhookSecret(randomBytes(SECRET_BYTES));
      const until = new Date(services.now() + PREVIOUS_SECRET_MS);
      if (!(await services.store.rotateSecret(id, services.sealSecret(secret), until)))
        throw webhookRefused('missing');
      return { id, secret, previousSecretExpiresAt: until.toISOString() };
    },
  },
];

/** @throws ApiError: KS-4107 where the type is none that a webhook can subscribe to, else what the schema finds */
function eventOf(body: JsonObject): (typeof EVENT_TYPES)[number] {
  const event = EVENT_TYPES.find((type) => type === body.event);
  if (event !== undefined) return event;
  if (typeof body.event !== 'string') check(TestBody, body);
  const details = [{ path: '/event', message: `must be one of ${EVENT_TYPES.join(', ')}` }];
  throw new ApiError(ERRORS.invalidWebhookEvents, { details });
}

const sendingRoutes = (services: WebhookServices): Route[] => [
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
    errors: [ERRORS.fieldMissing, ERRORS.invalidWebhookEvents, ...REFUSALS],
    failure: ERRORS.internal,
    async handle({ partner, params, body }) {
      const event = eventOf(body);
      const id = await found(services, partner.partnerId, params.id!);
      const sent = await services.store.recordTestEvent(
        partner.partnerId,
        id,
        event,
        new Date(services.now()),
      );
      if (sent === undefined) {
        const details = [{ path: '', message: 'The webhook is inactive' }];
        throw new ApiError(ERRORS.validationFailed, { details });
      }
      services.eventsRecorded(1);
      return sent;
    },
  },
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
    errors: [...REFUSALS, ERRORS.notFound],
    failure: ERRORS.internal,
    async handle({ partner, params }) {
      const id = await found(services, partner.partnerId, params.id!);
      const deliveryId = params.deliveryId!;
      const isResent = DELIVERY_ID.test(deliveryId) && (await services.store.resendOfWebhook(id, deliveryId));
      if (!isResent) throw new ApiError(ERRORS.notFound);
      services.eventsRecorded(1);
      return { resent: 1 };
    },
  },
];
