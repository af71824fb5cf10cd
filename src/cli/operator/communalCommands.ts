/** `spindle communal`: rules, funding, state and events of communal progressives. */
import { randomUUID } from 'node:crypto';
import { Option } from 'commander';
import { bodyOf, NoAnswerError } from '../../api/client/apiClients.js';
import { parseUsdText, UsageError } from '../command.js';
import { withYes } from '../confirm.js';
import { keyValues, type TableColumn, table } from '../output.js';
import {
  auditReasonOf,
  bytesOf,
  type Call,
  forReason,
  note,
  type OperatorCommands,
  pageOf,
  type Schemas,
  withPages,
  withReason,
} from './call.js';
import { gameIdOf, named } from './names.js';

export function addCommunalCommands(commands: OperatorCommands): void {
  const group = commands.group('communal', 'communal progressives of slot games');
  withReason(
    withYes(
      commands.add('set <GAME>', "set the rules of a slot game's communal progressive", setRules, group),
    ),
  )
    .requiredOption('--rules <FILE>', 'JSON file with the body of the request (docs/communal.md)')
    .option('--reset-progress', 'reset the counter of the communal progressive to 0')
    .addHelpText('after', '\nExample:\n  spindle communal set 7 --rules rules.json');
  commands.add('show <GAME>', 'show the rules, exact progress and budget', showPot, group);
  forReason(
    withYes(
      commands.add('fund <GAME>', 'add an amount to the budget, once for each request id', fund, group),
    ),
  )
    .addOption(
      new Option('--amount <USD>', 'amount to add; a negative amount is withdrawn')
        .argParser(parseUsdText)
        .makeOptionMandatory(),
    )
    .option(
      '--request-id <ID>',
      'request id, to repeat a funding (default: a new id, which is printed first)',
    );
  withPages(
    commands.add(
      'events <GAME>',
      'list the events of the communal progressive, newest first',
      showEvents,
      group,
    ),
    'events',
  );
}

type Tier = Schemas['CommunalResponse']['tiers'][number];
type Event = Schemas['OperatorCommunalEvents']['events'][number];

const TIERS: readonly TableColumn<Tier>[] = [
  { heading: 'level', value: (row) => row.tierLevel, kind: 'number' },
  { heading: 'name', value: (row) => row.tierName },
  { heading: 'at spins', value: (row) => row.triggerAtSpins, kind: 'number' },
  { heading: 'USD', value: (row) => row.amountUsd },
];
const EVENTS: readonly TableColumn<Event>[] = [
  { heading: 'at', value: (row) => row.createdAt },
  { heading: 'level', value: (row) => row.tierLevel, kind: 'number' },
  { heading: 'name', value: (row) => row.tierName },
  { heading: 'USD', value: (row) => row.totalAmountUsd },
  { heading: 'winners', value: (row) => row.winners, kind: 'number' },
  { heading: 'status', value: (row) => row.status },
];

const potLines = ({ tiers, ...members }: Schemas['CommunalResponse'] | Schemas['OperatorCommunal']): string =>
  `${keyValues(members)}${table(TIERS, tiers)}`;

async function setRules(call: Call): Promise<void> {
  const { client, words, options, print, confirm } = call;
  const params = { path: { id: await gameIdOf(client, words[0]!) } };
  const file = options.rules as string;
  let rules: Schemas['CommunalBody'];
  try {
    rules = JSON.parse(bytesOf(file).toString('utf8')) as Schemas['CommunalBody'];
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} is not valid JSON`);
  }
  if (options.resetProgress === true)
    await confirm(
      `This will reset the progress of the communal progressive of game ${words[0]} permanently.`,
    );
  const body = {
    ...rules,
    ...(options.resetProgress === true && { resetProgress: true }),
    ...auditReasonOf(call),
  };
  print(await bodyOf(client.PUT('/games/{id}/communal', { params, body })), potLines);
}

async function showPot({ client, words, print }: Call): Promise<void> {
  const params = { path: { id: await gameIdOf(client, words[0]!) } };
  print(await bodyOf(client.GET('/games/{id}/communal', { params })), potLines);
}

async function fund({ client, words, options, print, confirm }: Call): Promise<void> {
  const {
    amount,
    reason,
    requestId = randomUUID(),
  } = options as Record<'amount' | 'reason', string> & {
    requestId?: string;
  };
  const id = await gameIdOf(client, words[0]!);
  const params = { path: { id } };
  const { budgetUsd } = await bodyOf(client.GET('/games/{id}/communal', { params }));
  const change = amount.startsWith('-') ? `take ${amount.slice(1)} USD from` : `add ${amount} USD to`;
  await confirm(
    `This will ${change} the budget of the communal progressive of game ${named(words[0]!, id)}, which is ${budgetUsd} USD now. The budget is paid out to players.`,
  );
  // The request id is printed before the request is sent, so that a request without an answer can be repeated
  // with the same id.
  note(`request id ${requestId}`);
  const body = { amountUsd: amount, reason, requestId };
  try {
    print(await bodyOf(client.POST('/games/{id}/communal/funding', { params, body })), keyValues);
  } catch (error) {
    if (error instanceof NoAnswerError) {
      note(
        `It is unknown whether the budget changed. Repeat the command with --request-id '${requestId}', which changes the budget only once.`,
      );
    }
    throw error;
  }
}

async function showEvents(call: Call): Promise<void> {
  const { client, words, print } = call;
  const path = { id: await gameIdOf(client, words[0]!) };
  const query = pageOf(call);
  print(await bodyOf(client.GET('/games/{id}/communal/events', { params: { path, query } })), ({ events }) =>
    table(EVENTS, events),
  );
}
