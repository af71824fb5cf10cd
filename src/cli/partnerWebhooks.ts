/** Declares what partners call of `spindle webhooks`: `listen` and `manage`. */
import type { Command } from 'commander';
import type { PartnerClient } from '../client/client.js';
import type { ManageOptions } from './ownWebhooks.js';

export interface PartnerSide {
  /** The brand that stands in the names of headers. */
  brand(): Promise<string>;
  /** @throws UsageError where the address or the key is none */
  open(options: { url?: string; keyFile: string }): Promise<PartnerClient>;
}

/** Adds the commands to the program's group `webhooks`. */
export function addPartnerWebhookCommands(program: Command, { brand, open }: PartnerSide): void {
  const webhooks = program.commands.find((command) => command.name() === 'webhooks')!;
  const listen = webhooks
    .command('listen')
    .description('receive deliveries and check signatures')
    .helpGroup('Without any service or store:')
    .option('--port <N>', 'where (9000; 0: any)')
    .option(
      '--secret <SECRET>',
      'secret of the webhook, whsec_…; may be given again',
      (secret: string, secrets: readonly string[]) => [...secrets, secret],
      [],
    )
    .action(async () => {
      const { port, secret, json = false } = listen.optsWithGlobals();
      await (await import('./webhooks.js')).listen(await brand(), { port, secret, json });
    });
  const manage = webhooks
    .command('manage <ACTION> [WEBHOOK_ID]')
    .description("list, test, rotate or (de)activate a partner's own")
    .helpGroup('Over the partner API of a running service:')
    .requiredOption('--key-file <FILE>', 'file of a key of the partner')
    .option('--url <URL>', 'where the service is (else SPINDLE_URL, else HOST and PORT)')
    .option('--event <EVENT>', 'type of the event that test sends (spin.large_win)')
    .addHelpText(
      'after',
      `
ACTION is list, test, rotate (a new secret, shown this once; the old one signs, too, for 24 hours), activate or deactivate.

Examples:
  spindle webhooks manage list --key-file partner-key
  spindle webhooks manage rotate 7 --key-file partner-key`,
    )
    .action(async (action: string, webhook: string | undefined) => {
      const options = manage.optsWithGlobals<ManageOptions & { keyFile: string; url?: string }>();
      const own = await import('./ownWebhooks.js');
      await own.manage(await open(options), action, webhook, options);
    });
}
