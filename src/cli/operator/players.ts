/** `spindle adjust`: adjusts the balance of a player. `spindle player`: blocks it, lets it play again. */
import { randomUUID } from 'node:crypto';
import { Option } from 'commander';
import { bodyOf, NoAnswerError } from '../../client/client.js';
import { usdText, whole } from '../command.js';
import { keyValues } from '../output.js';
import { type Call, note, type OperatorCommands } from './call.js';

/** Adds the commands to the program. */
export function addPlayerCommands(commands: OperatorCommands): void {
  const player = commands.group('player', 'block players and let them play again');
  commands
    .add('block <PARTNER_ID> <PLAYER_ID>', 'refuse the spins of a player', setStatus('BLOCKED'), player)
    .requiredOption('--reason <TEXT>', 'why, for the audit log');
  commands
    .add('unblock <PARTNER_ID> <PLAYER_ID>', 'let a player play again', setStatus('ACTIVE'), player)
    .requiredOption('--reason <TEXT>', 'why, for the audit log');
  commands
    .add('adjust <PARTNER_ID> <PLAYER_ID>', 'adjust a balance', adjust)
    .addOption(
      new Option('--amount <USD>', 'what is added; below 0: taken').argParser(usdText).makeOptionMandatory(),
    )
    .requiredOption('--reason <TEXT>', 'why, for the audit log')
    .option(
      '--request-id <ID>',
      'of the adjustment that is repeated; else a new one is made, and printed first',
    )
    .addHelpText(
      'after',
      `
Examples:
  spindle adjust 2 alice --amount 12.50 --reason 'goodwill, case 4711'
  spindle adjust 2 alice --amount -12.50 --reason 'booked twice' --request-id case-4711-undo`,
    );
}

const setStatus =
  (status: 'ACTIVE' | 'BLOCKED') =>
  async ({ client, words, options, print }: Call): Promise<void> => {
    const id = whole(words[0], 'PARTNER_ID');
    const call = client.PATCH('/partners/{id}/players/{playerId}', {
      params: { path: { id, playerId: words[1]! } },
      body: { status, reason: String(options.reason) },
    });
    print(await bodyOf(call), keyValues);
  };

async function adjust({ client, words, options, print }: Call): Promise<void> {
  const {
    amount,
    reason,
    requestId = randomUUID(),
  } = options as Record<'amount' | 'reason', string> & {
    requestId?: string;
  };
  const id = whole(words[0], 'PARTNER_ID');
  // Before it is sent: whoever gets no answer can repeat it.
  note(`request id ${requestId}`);
  const call = client.POST('/partners/{id}/players/{playerId}/adjustments', {
    params: { path: { id, playerId: words[1]! } },
    body: { amountUsd: Number(amount), reason, requestId },
    // The amount as its text: a double doesn't tell all amounts apart.
    bodySerializer: (body) => {
      const { amountUsd, ...rest } = body!;
      return `{"amountUsd":${amount},${JSON.stringify(rest).slice(1)}`;
    },
  });
  try {
    print(await bodyOf(call), keyValues);
  } catch (error) {
    if (error instanceof NoAnswerError) {
      note(`Whether the balance was adjusted is not known: repeat it with --request-id '${requestId}'.`);
    }
    throw error;
  }
}
