/** What partners do with a webhook after its registration: change it, rotate its secret, test it, send again (docs/contract.md §13.4). */
import { randomBytes } from 'node:crypto';
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { webhookSecret } from '../../domain/webhook.js';
import { check, type JsonObject } from '../server/body.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { EVENT_TYPES, TestBody } from './contract.js';
import { checked, DELIVERY_ID, SECRET_BYTES, webhookIdOf, webhookRefused } from './routes.js';

const PREVIOUS_SECRET_MS = 86_400_000;

export const webhookUpkeepRoutes = (services: Services): Route[] => [
  ...changingRoutes(services),
  ...sendingRoutes(services),
];

const changingRoutes = (services: Services): Route[] => [
  route(contract.updateWebhook, async ({ partner, params, body }) => {
    const id = await webhookIdOf(services, partner, params.id);
    const { url, events } = await checked(
      body,
      (text) => services.webhooks.judgeUrl(text, partner.environment),
      [],
    );
    const { isActive } = body;
    if (isActive !== undefined && typeof isActive !== 'boolean') {
      throw invalid([{ path: '/isActive', message: 'must be a boolean' }]);
    }
    const row = await services.store.webhooks.update(id, { url, events, isActive });
    // It may have been deleted in between.
    if (row === undefined) throw webhookRefused('missing');
    return row;
  }),
  route(contract.rotateWebhookSecret, async ({ partner, params }) => {
    const id = await webhookIdOf(services, partner, params.id);
    const secret = webhookSecret(randomBytes(SECRET_BYTES));
    const until = new Date(services.process.now() + PREVIOUS_SECRET_MS);
    if (!(await services.store.webhooks.rotateSecret(id, services.webhooks.sealSecret(secret), until)))
      throw webhookRefused('missing');
    return { id, secret, previousSecretExpiresAt: until.toISOString() };
  }),
];

/** @throws ApiError: KS-4107 where the type is none that a webhook can subscribe to, else what the schema finds */
function eventOf(body: JsonObject): (typeof EVENT_TYPES)[number] {
  const event = EVENT_TYPES.find((type) => type === body.event);
  if (event !== undefined) return event;
  if (typeof body.event !== 'string') check(TestBody, body);
  const details = [{ path: '/event', message: `must be one of ${EVENT_TYPES.join(', ')}` }];
  throw new ApiError(ERRORS.invalidWebhookEvents, { details });
}

const sendingRoutes = (services: Services): Route[] => [
  route(contract.testWebhook, async ({ partner, params, body }) => {
    const event = eventOf(body);
    const id = await webhookIdOf(services, partner, params.id);
    const sent = await services.store.events.recordTest(
      partner.partnerId,
      id,
      event,
      new Date(services.process.now()),
    );
    if (sent === undefined) {
      throw invalid([{ path: '', message: 'The webhook is inactive' }]);
    }
    services.webhooks.recorded(1);
    return sent;
  }),
  route(contract.resendOwnDelivery, async ({ partner, params }) => {
    const id = await webhookIdOf(services, partner, params.id);
    const deliveryId = params.deliveryId;
    const isResent =
      DELIVERY_ID.test(deliveryId) && (await services.store.deliveries.resendOfWebhook(id, deliveryId));
    if (!isResent) throw new ApiError(ERRORS.notFound);
    services.webhooks.recorded(1);
    return { resent: 1 };
  }),
];
