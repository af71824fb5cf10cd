/** Declares the commands for partners: `spindle webhooks listen` and `manage`, and `spindle sandbox`. */
import type { Command } from 'commander';
import type { PartnerClient } from '../api/client/apiClients.js';
import { OPERATOR_GROUP } from './operator/call.js';
import type { ManageOptions } from './ownWebhooks.js';

export interface PartnerSide {
  /** Returns the brand, which is part of the names of the service's own headers. */
  brand(): Promise<string>;
  open(options: ServiceOptions): Promise<PartnerClient>;
}

interface ServiceOptions {
  readonly url?: string;
  readonly keyFile: string;
  readonly json?: true;
}

const HELP_GROUP = 'Commands over the partner API of a running service:';

const withKey = (command: Command): Command =>
  command
    .helpGroup(HELP_GROUP)
    .requiredOption('--key-file <FILE>', 'file with an API key of the partner')
    .option(
      '--url <URL>',
      'address of the service (default: SPINDLE_URL, then the service started here, then HOST and PORT)',
    );

/** The command group `webhooks` must already exist. */
export function addPartnerApiCommands(program: Command, side: PartnerSide): void {
  const webhooks = program.commands.find((command) => command.name() === 'webhooks')!;
  addListen(webhooks, side);
  addManage(webhooks, side);
  addSandbox(program, side);
}

function addListen(webhooks: Command, { brand }: PartnerSide): void {
  const listen = webhooks
    .command('listen')
    .description('receive deliveries on this machine and check their signatures')
    .helpGroup('Commands that need no service or store:')
    .option('--port <N>', 'where (9000; 0: any)')
    .option(
      '--secret-file <FILE>',
      'file with the secrets of the webhook (whsec_…), one in each line; - reads standard input',
    )
    .action(async () => {
      const { port, secretFile, json = false } = listen.optsWithGlobals();
      await (await import('./webhookListener.js')).listenForDeliveries(await brand(), {
        port,
        secretFile,
        json,
      });
    });
}

function addManage(webhooks: Command, { open }: PartnerSide): void {
  const manage = withKey(webhooks.command('manage <ACTION> [WEBHOOK_ID] [DELIVERY_ID]'))
    .description('list, register, change, test or delete the webhooks of a partner')
    .option('--event <EVENT>', 'type of the event that test sends (default: spin.large_win)')
    .option('--to <URL>', 'address of the webhook, for register and change')
    .option('--events <EVENTS>', 'types of events, separated by commas, for register and change')
    .option('--after <EVENT_ID>', 'show only events after this event')
    .option('--limit <N>', 'maximum number of events or deliveries shown (default: 20)')
    .addHelpText(
      'after',
      `
ACTION is one of these:
  list                  list the webhooks
  register              register a webhook (--to, --events); its secret is shown only once
  change                change a webhook (--to, --events)
  test                  send a test event (--event)
  rotate                replace the secret; it is shown only once, and the old one also signs for 24 hours
  activate, deactivate  turn a webhook on or off
  delete                delete a webhook
  deliveries            list the deliveries of a webhook
  resend                send one delivery again
  events                list the events of the account of the last 30 days, oldest first

Examples:
  spindle webhooks manage register --to https://acme.example/hook --events spin.large_win --key-file partner-key
  spindle webhooks manage list --key-file partner-key
  spindle webhooks manage change 7 --events spin.large_win,block.low_reserve --key-file partner-key
  spindle webhooks manage resend 7 dlv_019687b4c2d1f3a09e6b5d7c8a4f2e10 --key-file partner-key
  spindle webhooks manage events --after evt_019687b4c2d1f3a09e6b5d7c8a4f2e10 --key-file partner-key`,
    )
    .action(async (action: string, webhook?: string, delivery?: string) => {
      const options = manage.optsWithGlobals<ManageOptions & ServiceOptions>();
      const own = await import('./ownWebhooks.js');
      await own.manage(await open(options), action, [webhook, delivery], options);
    });
}

function addSandbox(program: Command, { open }: PartnerSide): void {
  // The command is listed in the help among the operator commands, because a heading for a single line is not
  // worthwhile.
  const sandbox = program
    .command('sandbox')
    .description('outcomes of sandbox players')
    .helpGroup(OPERATOR_GROUP);
  const choose = withKey(sandbox.command('next-outcome <GAME_ID> <PLAYER_ID> <COMBINATION>'))
    .description('choose the outcome of the next spin of a sandbox player in a slot game')
    .addHelpText(
      'after',
      `
COMBINATION is the position of the combination in the PAR sheet, counted from 0.

Example:
  spindle sandbox next-outcome 1 alice 7 --key-file .data/demo-api-key`,
    )
    .action(async (...words: string[]) => {
      const options = choose.optsWithGlobals<ServiceOptions>();
      const { chooseNextOutcome } = await import('./ownSandbox.js');
      await chooseNextOutcome(await open(options), [words[0]!, words[1]!, words[2]!], options);
    });
}
