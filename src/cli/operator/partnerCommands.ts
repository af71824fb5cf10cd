/** `spindle partner`: manages partners and their settings. */
import { type Command, Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { DEACTIVATE_PARTNER, PARTNERS, STOP_PARTNER } from '../../api/client/views/partners.js';
import { SETTING_LIST } from '../../domain/partnerSettings.js';
import { NONE, oneOf, orNone, UsageError, usdNumber, wholeNumber } from '../command.js';
import { withYes } from '../confirm.js';
import { keyValues, listOf } from '../output.js';
import {
  auditReasonOf,
  type Call,
  type OperatorCommands,
  type Options,
  type Schemas,
  withReason,
} from './call.js';
import { moveAndWait } from './moves.js';
import { partnerIdOf } from './names.js';

type Settings = Omit<Schemas['PartnerPatch'], 'name' | 'isActive' | 'dealing'>;

const UNITS = { int: 'N', bigint: 'USD', text: 'ADDRESS' };
const READERS: Record<keyof typeof UNITS, (text: string) => unknown> = {
  int: wholeNumber,
  bigint: usdNumber,
  text: String,
};

const SETTINGS = SETTING_LIST.map(({ name, shown, type, initial, help }) => {
  const flag = name.replace(/Micros$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const read = initial === null ? orNone(READERS[type]) : READERS[type];
  const option =
    name === 'balanceMode'
      ? new Option(`--${flag} <MODE>`, help).argParser(oneOf({ track: 'track', enforce: 'enforce' }))
      : new Option(`--${flag} <${UNITS[type]}>`, help).argParser<unknown>(read);
  return { shown, option };
});

export function addPartnerCommands(commands: OperatorCommands): void {
  const group = commands.group('partner', 'partners and their settings');
  withSettings(
    commands
      .request('create', 'create a partner', group, 'POST /partners', {
        body: ({ slug, name, environment, cell, ...settings }) => ({
          ...{ slug, name, environment, cell },
          ...settingsOf(settings),
        }),
      })
      .requiredOption('--slug <SLUG>', 'short name: lowercase letters, digits and hyphens')
      .requiredOption('--name <NAME>', 'name of the partner')
      .requiredOption('--environment <ENVIRONMENT>', "sandbox or production; it can't be changed later")
      .addOption(
        new Option('--cell <N>', 'number of the cell (default: the cell with the fewest partners)').argParser(
          wholeNumber,
        ),
      ),
  ).addHelpText(
    'after',
    `
Examples:
  spindle partner create --slug acme --name 'Acme Games' --environment sandbox
  spindle partner create --slug acme-live --name Acme --environment production --balance-mode enforce --funding 1000.50`,
  );
  commands.request('list', 'list the partners', group, 'GET /partners', {
    plain: ({ partners }) => listOf(PARTNERS, partners),
  });
  commands.request('show <PARTNER>', 'show a partner with its settings', group, 'GET /partners/{id}');
  withSettings(
    withReason(
      withYes(commands.add('update <PARTNER>', 'change settings of a partner', updatePartner, group)),
    )
      .option('--name <NAME>', 'name of the partner')
      .addOption(
        new Option('--active <BOOLEAN>', 'true, or false to refuse all keys of the partner').argParser(
          oneOf({ true: true, false: false }),
        ),
      )
      .addOption(
        new Option('--dealing <STATE>', 'on, or off to stop dealing for this partner').argParser(
          oneOf({ on: 'ON', off: 'OFF' }),
        ),
      ),
  ).addHelpText(
    'after',
    `
Examples:
  spindle partner update 2 --spin-rate-limit 6000 --funding none
  spindle partner update 2 --active true`,
  );
  withReason(
    commands.add(
      'move <PARTNER>',
      'move a partner to another cell without an interruption of spins',
      movePartner,
      group,
    ),
  ).addOption(
    new Option('--cell <N>', 'number of the target cell').argParser(wholeNumber).makeOptionMandatory(),
  );
  withReason(
    withYes(
      commands.add(
        'deactivate <PARTNER>',
        'deactivate a partner, so that all its keys are refused',
        deactivatePartner,
        group,
      ),
    ),
  );
}

function withSettings(command: Command): Command {
  for (const { option } of SETTINGS) command.addOption(option);
  return command;
}

function settingsOf(options: Options): Settings {
  const given: [string, unknown][] = [];
  for (const { shown, option } of SETTINGS) {
    const value = options[option.attributeName()];
    if (value !== undefined) given.push([shown, value === NONE ? null : value]);
  }
  return Object.fromEntries(given);
}

async function updatePartner(call: Call): Promise<void> {
  const { name, active, dealing } = call.options as {
    name?: string;
    active?: boolean;
    dealing?: 'ON' | 'OFF';
  };
  const body = {
    ...(name === undefined ? {} : { name }),
    ...(active === undefined ? {} : { isActive: active }),
    ...(dealing === undefined ? {} : { dealing }),
    ...settingsOf(call.options),
  };
  if (Object.keys(body).length === 0) {
    throw new UsageError('Nothing to update. Give at least one setting, --name, --active or --dealing.');
  }
  await patchPartner(call, body);
}

async function movePartner(call: Call): Promise<void> {
  const { client, words, options, print } = call;
  const partnerId = await partnerIdOf(client, words[0]!);
  print(await moveAndWait(client, partnerId, options.cell as number, auditReasonOf(call)), keyValues);
}

const deactivatePartner = (call: Call): Promise<void> => patchPartner(call, { isActive: false });

/** Returns how a change stops play, as sentences; empty if it does not. */
const harmOf = ({ isActive, dealing }: Schemas['PartnerPatch']): string =>
  [
    ...(isActive === false ? [DEACTIVATE_PARTNER.consequence] : []),
    ...(dealing === 'OFF' ? [STOP_PARTNER.consequence] : []),
  ].join(' ');

async function patchPartner(call: Call, change: Schemas['PartnerPatch']): Promise<void> {
  const { client, words, print } = call;
  const body = { ...change, ...auditReasonOf(call) };
  const params = { path: { id: await partnerIdOf(client, words[0]!) } };
  const harm = harmOf(change);
  if (harm !== '' && call.options.yes !== true) {
    const { slug, name, environment, partnerId } = await bodyOf(client.GET('/partners/{id}', { params }));
    await call.confirm(`This affects the ${environment} partner ${slug} (${name}, id ${partnerId}). ${harm}`);
  }
  print(await bodyOf(client.PATCH('/partners/{id}', { params, body })), keyValues);
}
