/** `spindle webhooks deliveries`, `failed` and `resend`: list deliveries and resend them. */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { UsageError } from '../command.js';
import { type TableColumn, table } from '../output.js';
import { type Call, type OperatorCommands, pageLine, type Schemas, withPages } from './call.js';

const STATUSES = ['pending', 'delivered', 'failed'] as const;

const COLUMNS: readonly TableColumn<Schemas['OperatorDelivery']>[] = [
  { heading: 'id', value: (row) => row.id },
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'webhook', value: (row) => row.webhookId, kind: 'number' },
  { heading: 'event', value: (row) => row.event },
  { heading: 'attempts', value: (row) => row.attempts, kind: 'number' },
  { heading: 'last attempt', value: (row) => row.lastAttemptAt },
  { heading: 'answer', value: (row) => row.responseStatus, kind: 'number' },
  { heading: 'reason', value: (row) => row.lastError },
  { heading: 'url', value: (row) => row.url },
];

export function addWebhookCommands(commands: OperatorCommands): void {
  const group = commands.group('webhooks', 'webhooks and their deliveries');
  withPages(
    commands.request(
      'failed',
      'list the deliveries that failed permanently, newest first',
      group,
      'GET /deliveries',
      { plain },
    ),
    'deliveries',
  ).option('--partner <PARTNER>', 'only deliveries of this partner, by id or slug');
  withPages(
    commands.request(
      'deliveries',
      'list the deliveries of all partners, newest first',
      group,
      'GET /deliveries',
      { plain },
    ),
    'deliveries',
  )
    .option('--partner <PARTNER>', 'only deliveries of this partner, by id or slug')
    .addOption(
      new Option('--status <STATUS>', 'pending, delivered or failed').choices(STATUSES).default('failed'),
    );
  commands
    .add('resend [DELIVERY_ID...]', 'resend single deliveries, or all failed deliveries', resend, group)
    .option('--failed-since <TIME>', 'resend all deliveries that have failed since this RFC 3339 time')
    .addHelpText(
      'after',
      `
Examples:
  spindle webhooks resend --failed-since 2026-05-01T00:00:00Z
  spindle webhooks resend dlv_019687b4c2d1f3a09e6b5d7c8a4f2e10`,
    );
}

const plain = (body: Schemas['OperatorDeliveries']): string =>
  table(COLUMNS, body.deliveries) + pageLine(body, 'deliveries');

async function resend({ client, words, options, print }: Call): Promise<void> {
  const { failedSince } = options as { failedSince?: string };
  if ((words.length === 0) === (failedSince === undefined)) {
    throw new UsageError('Give either DELIVERY_ID or --failed-since TIME');
  }
  if (failedSince !== undefined) {
    print(
      await bodyOf(client.POST('/webhooks/resend', { body: { since: failedSince } })),
      ({ resent }) => `${resent} deliveries will be sent again\n`,
    );
    return;
  }
  for (const id of words) {
    print(
      await bodyOf(client.POST('/deliveries/{id}/resend', { params: { path: { id } } })),
      () => `${id} will be sent again\n`,
    );
  }
}
