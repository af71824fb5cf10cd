/** `spindle webhooks manage`: manages a partner's webhooks over the partner API with the partner's key. */
import { bodyOf, type PartnerClient, type PartnerSchemas } from '../api/client/apiClients.js';
import { UsageError } from './command.js';
import { keyValues, type TableColumn, table } from './output.js';

export interface ManageOptions {
  readonly event?: string;
  readonly to?: string;
  readonly events?: string;
  readonly after?: string;
  readonly limit?: string;
  readonly json?: true;
}

interface Shown {
  readonly body: object;
  readonly text: string;
}

type Webhook = PartnerSchemas['ListedWebhook'];
type Delivery = PartnerSchemas['Delivery'];
type Event = PartnerSchemas['FeedEvent'];

const WEBHOOKS: readonly TableColumn<Webhook>[] = [
  { heading: 'id', value: (row) => row.id, kind: 'number' },
  { heading: 'url', value: (row) => row.url },
  { heading: 'events', value: (row) => row.events.join(' ') },
  { heading: 'state', value: (row) => row.health.state },
  { heading: 'reason', value: (row) => row.health.reason },
  { heading: 'failing since', value: (row) => row.health.failingSince },
  { heading: 'pending', value: (row) => row.health.pending, kind: 'number' },
];
const DELIVERIES: readonly TableColumn<Delivery>[] = [
  { heading: 'id', value: (row) => row.id },
  { heading: 'event', value: (row) => row.event },
  { heading: 'event id', value: (row) => row.eventId },
  { heading: 'status', value: (row) => row.status },
  { heading: 'attempts', value: (row) => row.attempts, kind: 'number' },
  { heading: 'answer', value: (row) => row.responseStatus, kind: 'number' },
  { heading: 'created', value: (row) => row.createdAt },
];
const EVENTS: readonly TableColumn<Event>[] = [
  { heading: 'id', value: (row) => row.id },
  { heading: 'event', value: (row) => row.event },
  { heading: 'created', value: (row) => row.createdAt },
  { heading: 'data', value: (row) => row.data },
];

const members = (body: object): Shown => ({ body, text: keyValues(body) });

function limitOf({ limit }: ManageOptions): { limit?: number } {
  if (limit === undefined) return {};
  if (!/^\d{1,3}$/.test(limit)) throw new UsageError('--limit must be 1 to 100');
  return { limit: Number(limit) };
}

async function change(client: PartnerClient, id: number, { to, events }: ManageOptions): Promise<Shown> {
  if (to === undefined && events === undefined) throw new UsageError('change needs --to or --events');
  const body: PartnerSchemas['WebhookPatch'] = {
    ...(to === undefined ? {} : { url: to }),
    ...(events === undefined ? {} : { events: events.split(',') as PartnerSchemas['WebhookEvent'][] }),
  };
  return members(await bodyOf(client.PATCH('/webhooks/{id}', { params: { path: { id } }, body })));
}

async function register(client: PartnerClient, { to, events }: ManageOptions): Promise<Shown> {
  if (to === undefined || events === undefined) throw new UsageError('register needs --to and --events');
  const body = { url: to, events: events.split(',') as PartnerSchemas['WebhookEvent'][] };
  return members(await bodyOf(client.POST('/webhooks', { body })));
}

type Act = (client: PartnerClient, id: number, options: ManageOptions, delivery?: string) => Promise<Shown>;

const setActive =
  (isActive: boolean): Act =>
  async (client, id) =>
    members(await bodyOf(client.PATCH('/webhooks/{id}', { params: { path: { id } }, body: { isActive } })));

/** Actions on one webhook, by name. */
const ACTIONS: Readonly<Record<string, Act>> = {
  change,
  test: async (client, id, { event = 'spin.large_win' }) => {
    const body = { event: event as PartnerSchemas['TestBody']['event'] };
    return members(await bodyOf(client.POST('/webhooks/{id}/test', { params: { path: { id } }, body })));
  },
  rotate: async (client, id) =>
    members(await bodyOf(client.POST('/webhooks/{id}/rotate-secret', { params: { path: { id } } }))),
  delete: async (client, id) => {
    await bodyOf(client.DELETE('/webhooks/{id}', { params: { path: { id } } }));
    return { body: { id, isDeleted: true }, text: `Webhook ${id} was deleted.\n` };
  },
  activate: setActive(true),
  deactivate: setActive(false),
  deliveries: async (client, id, options) => {
    const params = { path: { id }, query: limitOf(options) };
    const body = await bodyOf(client.GET('/webhooks/{id}/deliveries', { params }));
    return { body, text: table(DELIVERIES, body.deliveries) };
  },
  resend: async (client, id, _options, deliveryId) => {
    if (deliveryId === undefined)
      throw new UsageError('resend needs the id of a webhook and the id of a delivery');
    const params = { path: { id, deliveryId } };
    return members(await bodyOf(client.POST('/webhooks/{id}/deliveries/{deliveryId}/resend', { params })));
  },
};

const LISTS: Readonly<Record<string, (client: PartnerClient, options: ManageOptions) => Promise<Shown>>> = {
  list: async (client) => {
    const body = await bodyOf(client.GET('/webhooks'));
    return { body, text: table(WEBHOOKS, body.webhooks) };
  },
  register,
  events: async (client, options) => {
    const { after } = options;
    const query = { ...limitOf(options), ...(after === undefined ? {} : { after }) };
    const body = await bodyOf(client.GET('/events', { params: { query } }));
    return { body, text: table(EVENTS, body.events) };
  },
};

const ACTION_NAMES = [...Object.keys(LISTS), ...Object.keys(ACTIONS)];

export async function manage(
  client: PartnerClient,
  action: string,
  [webhook, delivery]: readonly [webhook?: string | undefined, delivery?: string | undefined],
  options: ManageOptions,
): Promise<void> {
  const list = LISTS[action];
  const act = ACTIONS[action];
  if (list === undefined && act === undefined)
    throw new UsageError(`ACTION must be one of ${ACTION_NAMES.join(', ')}`);
  if (act !== undefined && !/^[1-9]\d{0,9}$/.test(webhook ?? ''))
    throw new UsageError(`${action} needs the id of a webhook`);
  const shown = await (list === undefined
    ? act!(client, Number(webhook), options, delivery)
    : list(client, options));
  process.stdout.write(options.json ? `${JSON.stringify(shown.body)}\n` : shown.text);
}
