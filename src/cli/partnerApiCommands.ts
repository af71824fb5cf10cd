/** Declares the commands for partners: `spindle webhooks listen` and `manage`, and `spindle sandbox`. */
import type { Command } from 'commander';
import type { PartnerClient } from '../api/client/apiClients.js';
import { OPERATOR_GROUP } from './operator/call.js';
import type { ManageOptions } from './ownWebhooks.js';

export interface PartnerSide {
  /** Returns the brand, which is part of header names. */
  brand(): Promise<string>;
  /** Opens a client of the partner API. @throws UsageError if the address or the key is invalid */
  open(options: ServiceOptions): Promise<PartnerClient>;
}

interface ServiceOptions {
  readonly url?: string;
  readonly keyFile: string;
  readonly json?: true;
}

const HELP_GROUP = 'Over the partner API of a running service:';

/** Adds the options of a command that needs a partner's key. */
const withKey = (command: Command): Command =>
  command
    .helpGroup(HELP_GROUP)
    .requiredOption('--key-file <FILE>', 'file of a key of the partner')
    .option(
      '--url <URL>',
      'where the service is (else SPINDLE_URL, else the one started here, else HOST and PORT)',
    );

/** Adds the commands for partners. The command group `webhooks` must already exist. */
export function addPartnerApiCommands(program: Command, side: PartnerSide): void {
  const webhooks = program.commands.find((command) => command.name() === 'webhooks')!;
  addListen(webhooks, side);
  addManage(webhooks, side);
  addSandbox(program, side);
}

function addListen(webhooks: Command, { brand }: PartnerSide): void {
  const listen = webhooks
    .command('listen')
    .description('receive deliveries and check signatures')
    .helpGroup('Without any service or store:')
    .option('--port <N>', 'where (9000; 0: any)')
    .option(
      '--secret-file <FILE>',
      'file of the secrets of the webhook, whsec_…, a line each (- reads the standard input)',
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
    .description("list, register, delete, … a partner's own")
    .option('--event <EVENT>', 'type of the event that test sends (spin.large_win)')
    .option('--to <URL>', 'address that register and change set')
    .option('--events <EVENTS>', 'types of events that register and change set, separated by commas')
    .option('--after <EVENT_ID>', 'events after this one')
    .option('--limit <N>', 'events or deliveries that are shown (20)')
    .addHelpText(
      'after',
      `
ACTION is list, register (--to, --events; its secret is shown this once), change (--to, --events), test, rotate (a new secret, shown this
once; the old one signs, too, for 24 hours), activate or deactivate, delete, deliveries, resend (one delivery), or events (of the account
for 30 days, oldest first).

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
    .description("a sandbox player's next outcome")
    .helpGroup(OPERATOR_GROUP);
  const choose = withKey(sandbox.command('next-outcome <GAME_ID> <PLAYER_ID> <COMBINATION>'))
    .description("choose the outcome of a sandbox player's next spin of a slot game")
    .addHelpText(
      'after',
      `
COMBINATION is the place of the combination in the PAR sheet, from 0.

Example:
  spindle sandbox next-outcome 1 alice 7 --key-file .data/demo-api-key`,
    )
    .action(async (...words: string[]) => {
      const options = choose.optsWithGlobals<ServiceOptions>();
      const { chooseNextOutcome } = await import('./ownSandbox.js');
      await chooseNextOutcome(await open(options), [words[0]!, words[1]!, words[2]!], options);
    });
}
