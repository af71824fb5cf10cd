/**
 * Handlers of webhooks, their deliveries (docs/contract.md §13.4) and the event feed. Operators can resend
 * deliveries.
 */
import { randomBytes } from 'node:crypto';
import { ApiError, ERRORS, type ErrorEntry, type Fault, invalid } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import { NO_TIME, rfc3339Time } from '../../domain/rfc3339.js';
import { FAULTS_MAX } from '../../domain/validation.js';
import { webhookSecret } from '../../domain/webhook.js';
import { EVENT_TYPES } from '../../domain/webhookEvents.js';
import type { UrlJudgement } from '../../domain/webhookUrl.js';
import type { DeliveryRow } from '../../webhooks/webhooks.store.js';
import type { Store } from '../api.store.js';
import { check, type JsonObject } from '../server/body.js';
import { pathId } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { TestBody, type WebhookBody } from './contract.js';

const SECRET_BYTES = 32;
/**
 * Pattern of a delivery id. Other texts are refused before a query, because the database does not accept
 * every text.
 */
const DELIVERY_ID = /^dlv_[0-9a-f]{32}$/;

const webhookRefused = (state: 'missing' | 'foreign'): ApiError =>
  new ApiError(state === 'foreign' ? ERRORS.webhookForeign : ERRORS.webhookNotFound);

/** Returns the faults in the event types of a registration, up to the number that a response can list. */
function eventFaults(events: unknown): Fault[] {
  const known: readonly string[] = EVENT_TYPES;
  if (!Array.isArray(events)) return [{ path: '/events', message: 'must be an array of event types' }];
  if (events.length === 0) return [{ path: '/events', message: 'must name at least one event type' }];
  // A list can have at most one valid element per event type. In a list of this length, the other elements
  // have enough faults to fill an error response.
  const looked = events.slice(0, FAULTS_MAX + known.length);
  return looked.flatMap((event, i): Fault[] => {
    const path = `/events/${i}`;
    if (!known.includes(event)) return [{ path, message: `must be one of ${known.join(', ')}` }];
    return looked.indexOf(event) < i
      ? [{ path, message: 'must not be a repetition of an earlier event type' }]
      : [];
  });
}

/**
 * @throws ApiError with up to {@link FAULTS_MAX} faults in `details`. Its code is that of the first kind of
 * fault found, in this order: missing members (KS-4102), the URL (KS-4106, KS-4217), the event types
 * (KS-4107)
 */
async function checked(
  body: JsonObject,
  judge: (url: string) => Promise<UrlJudgement>,
  required: readonly string[],
): Promise<{ url: string | undefined; events: string[] | undefined }> {
  const { url, events } = body;
  const faults: Fault[] = [];
  let entry: ErrorEntry | undefined;
  const add = (wrong: ErrorEntry, found: readonly Fault[]): void => {
    if (found.length === 0) return;
    entry ??= wrong;
    faults.push(...found);
  };
  for (const name of required) {
    if (body[name] === undefined) add(ERRORS.fieldMissing, [{ path: `/${name}`, message: 'is required' }]);
  }
  if (url !== undefined) {
    const { refusal, message = '' }: UrlJudgement =
      typeof url === 'string' ? await judge(url) : { refusal: 'invalid', message: 'must be a string' };
    const wrong = refusal === 'disallowed' ? ERRORS.webhookDestinationDisallowed : ERRORS.invalidWebhookUrl;
    if (refusal !== undefined) add(wrong, [{ path: '/url', message }]);
  }
  if (events !== undefined) add(ERRORS.invalidWebhookEvents, eventFaults(events));
  if (entry !== undefined) throw new ApiError(entry, { details: faults.slice(0, FAULTS_MAX) });
  return { url, events } as { url: string | undefined; events: string[] | undefined };
}

async function webhookIdOf({ store }: Services, { partnerId }: Partner, text: string): Promise<number> {
  const id = pathId(text);
  const state = id === undefined ? 'missing' : await store.webhooks.state(partnerId, id);
  if (id === undefined || state !== 'found') throw webhookRefused(state === 'foreign' ? state : 'missing');
  return id;
}

export const webhookRoutes = (services: Services): Route[] => {
  const { store } = services;
  return [
    route(contract.registerWebhook, async ({ partner, body }) => {
      const { partnerId, environment } = partner;
      const judge = (text: string) => services.webhooks.judgeUrl(text, environment);
      const { url, events } = (await checked(body, judge, ['url', 'events'])) as Required<WebhookBody>;
      const secret = webhookSecret(randomBytes(SECRET_BYTES));
      const sealed = services.webhooks.sealSecret(secret);
      const row = await store.webhooks.create({ partnerId, url, events, secret: sealed });
      if (row === undefined) throw new ApiError(ERRORS.capReached);
      return { ...row, secret };
    }),
    route(contract.listWebhooks, async ({ partner }) => {
      return { webhooks: await store.webhooks.list(partner.partnerId) };
    }),
    route(contract.deleteWebhook, async ({ partner, params }) => {
      const id = pathId(params.id);
      const result = id === undefined ? 'missing' : await store.webhooks.delete(partner.partnerId, id);
      if (result !== 'deleted') throw webhookRefused(result);
      return undefined;
    }),
    route(contract.listDeliveries, async ({ partner, params, query }) => {
      const id = await webhookIdOf(services, partner, params.id);
      const { page = 1, limit } = query;
      const { deliveries, total } = await store.webhooks.deliveryPage(id, page, limit);
      return { deliveries, page, limit, total };
    }),
    route(contract.resendFailed, async ({ actor, body }) => {
      const time = rfc3339Time(body.since);
      if (time === undefined) throw invalid([{ path: '/since', message: NO_TIME }]);
      return { resent: await store.deliveries.resendFailed(actor, time) };
    }),
    route(contract.resendDelivery, async ({ actor, params }) => {
      const id = params.id;
      const result = DELIVERY_ID.test(id) ? await store.deliveries.resend(actor, id) : 'missing';
      if (result === 'missing') throw new ApiError(ERRORS.notFound);
      if (result === 'webhook-deleted') throw new ApiError(ERRORS.webhookNotFound);
      return { resent: 1 };
    }),
    ...changingRoutes(services),
    ...sendingRoutes(services),
    ...eventRoutes(services),
    listAllDeliveries(services),
  ];
};

const PREVIOUS_SECRET_MS = 86_400_000;

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
    // The webhook may have been deleted since it was looked up.
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

/**
 * @throws ApiError KS-4107 if webhooks cannot subscribe to the event type; otherwise the faults of the schema
 */
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
    const id = pathId(params.id);
    const now = new Date(services.process.now());
    const { partnerEvents } = services.store;
    const sent =
      id === undefined ? undefined : await partnerEvents.recordTest(partner.partnerId, id, event, now);
    if (sent === undefined) {
      await webhookIdOf(services, partner, params.id);
      throw invalid([{ path: '', message: 'The webhook is inactive. Activate it first.' }]);
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

const EVENT_ID = /^evt_[0-9a-f]{32}$/;

const eventRoutes = ({ store }: { readonly store: Store }): Route[] => [
  route(contract.listEvents, async ({ partner, query }) => {
    const { after } = query;
    const limit = query.limit;
    const page =
      after === undefined || EVENT_ID.test(after)
        ? await store.partnerEvents.feed(partner.partnerId, after, limit)
        : undefined;
    if (page === undefined) {
      throw invalid([{ path: '/after', message: 'must be the id of an event of the last 30 days' }]);
    }
    return page;
  }),
];

const listAllDeliveries = ({ store }: Services): Route =>
  route(contract.listAllDeliveries, async ({ query }) => {
    const { page = 1, limit } = query;
    const status = (query.status ?? 'failed') as DeliveryRow['status'];
    const of = { status, partnerId: query.partnerId ?? null };
    const { deliveries, total } = await store.deliveryReads.page(of, page, limit);
    return { deliveries, page, limit, total };
  });
