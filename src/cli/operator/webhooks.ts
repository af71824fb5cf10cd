/** `spindle webhooks resend`: sends deliveries again. */
import { bodyOf } from '../../client/client.js';
import { UsageError } from '../command.js';
import type { Call, OperatorCommands } from './call.js';

/** Adds the commands to the program. */
export function addWebhookCommands(commands: OperatorCommands): void {
  const group = commands.group('webhooks', 'Deliveries of webhooks');
  commands
    .add('resend [DELIVERY_ID...]', 'send one delivery again, or all failed', resend, group)
    .option('--failed-since <TIME>', 'RFC 3339 time: all deliveries that have failed since')
    .addHelpText(
      'after',
      `
Examples:
  spindle webhooks resend --failed-since 2026-05-01T00:00:00Z
  spindle webhooks resend dlv_019687b4c2d1f3a09e6b5d7c8a4f2e10`,
    );
}

async function resend({ client, words, options, print }: Call): Promise<void> {
  const { failedSince } = options as { failedSince?: string };
  if ((words.length === 0) === (failedSince === undefined)) {
    throw new UsageError('Either DELIVERY_ID or --failed-since TIME is needed');
  }
  if (failedSince !== undefined) {
    print(
      await bodyOf(client.POST('/webhooks/resend', { body: { since: failedSince } })),
      ({ resent }) => `${resent} deliveries are sent again\n`,
    );
    return;
  }
  for (const id of words) {
    print(
      await bodyOf(client.POST('/deliveries/{id}/resend', { params: { path: { id } } })),
      () => `${id} is sent again\n`,
    );
  }
}
