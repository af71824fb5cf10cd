/** `spindle communal`: rules, funding, state and events of communal progressives. */
import { randomUUID } from 'node:crypto';
import { Option } from 'commander';
import { bodyOf, NoAnswerError } from '../../api/client/apiClients.js';
import { COMMUNAL_EVENTS, TIERS } from '../../api/client/views/games.js';
import { parseUsdText } from '../command.js';
import { withYes } from '../confirm.js';
import { keyValues, listOf } from '../output.js';
import {
  auditReasonOf,
  type Call,
  forReason,
  jsonOf,
  note,
  type OperatorCommands,
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
  const path = 'GET /games/{id}/communal';
  const plain = potLines;
  commands.request('show <GAME>', 'show the rules, exact progress and budget', group, path, { plain });
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
    commands.request(
      'events <GAME>',
      'list the events of the communal progressive, newest first',
      group,
      'GET /games/{id}/communal/events',
      { plain: ({ events }) => listOf(COMMUNAL_EVENTS, events) },
    ),
    'events',
  );
}

const potLines = ({ tiers, ...members }: Schemas['CommunalResponse'] | Schemas['OperatorCommunal']): string =>
  `${keyValues(members)}${listOf(TIERS, tiers)}`;

async function setRules(call: Call): Promise<void> {
  const { client, words, options, print, confirm } = call;
  const params = { path: { id: await gameIdOf(client, words[0]!) } };
  const rules = jsonOf(String(options.rules)) as Schemas['CommunalBody'];
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
