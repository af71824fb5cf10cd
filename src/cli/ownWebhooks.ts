/** `spindle webhooks manage`: what a partner does with its webhooks, over the partner API and with the partner's key. */
import { bodyOf, type PartnerClient, type PartnerSchemas } from '../client/client.js';
import { UsageError } from './command.js';
import { type Column, keyValues, table } from './output.js';

export interface ManageOptions {
  readonly event?: string;
  readonly json?: true;
}

type Webhook = PartnerSchemas['Webhook'];

const COLUMNS: readonly Column<Webhook>[] = [
  { heading: 'id', value: (row) => row.id, kind: 'number' },
  { heading: 'url', value: (row) => row.url },
  { heading: 'events', value: (row) => row.events.join(' ') },
  { heading: 'active', value: (row) => (row.isActive ? 'yes' : 'no') },
];

type Act = (client: PartnerClient, id: number, options: ManageOptions) => Promise<object>;

const setActive =
  (isActive: boolean): Act =>
  (client, id) =>
    bodyOf(client.PATCH('/webhooks/{id}', { params: { path: { id } }, body: { isActive } }));

/** What is done to one webhook, by the word for it. */
const ACTIONS: Readonly<Record<string, Act>> = {
  test: (client, id, { event = 'spin.large_win' }) => {
    const body = { event: event as PartnerSchemas['TestBody']['event'] };
    return bodyOf(client.POST('/webhooks/{id}/test', { params: { path: { id } }, body }));
  },
  rotate: (client, id) => bodyOf(client.POST('/webhooks/{id}/rotate-secret', { params: { path: { id } } })),
  activate: setActive(true),
  deactivate: setActive(false),
};

/** The words that name an action, for the help. */
export const ACTION_NAMES = ['list', ...Object.keys(ACTIONS)];

/** @throws UsageError where there is no such action, or its webhook is not named */
export async function manage(
  client: PartnerClient,
  action: string,
  webhook: string | undefined,
  options: ManageOptions,
): Promise<void> {
  const act = ACTIONS[action];
  if (act === undefined && action !== 'list')
    throw new UsageError(`ACTION must be one of ${ACTION_NAMES.join(', ')}`);
  if (act !== undefined && !/^[1-9]\d{0,9}$/.test(webhook ?? ''))
    throw new UsageError(`${action} needs the id of a webhook`);
  if (act === undefined) {
    const body = await bodyOf(client.GET('/webhooks'));
    process.stdout.write(options.json ? `${JSON.stringify(body)}\n` : table(COLUMNS, body.webhooks));
    return;
  }
  const body = await act(client, Number(webhook), options);
  process.stdout.write(options.json ? `${JSON.stringify(body)}\n` : keyValues(body));
}
