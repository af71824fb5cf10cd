/** `spindle request find`: shows what a requestId of a partner led to. */
import { bodyOf } from '../../api/client/apiClients.js';
import { NotFoundError } from '../command.js';
import { keyValues } from '../output.js';
import type { Call, OperatorCommands, Schemas } from './call.js';
import { partnerIdOf } from './names.js';

export function addRequestCommands(commands: OperatorCommands): void {
  const group = commands.group('request', 'requests of partners');
  commands
    .add(
      'find <PARTNER> <REQUEST_ID>',
      'show the spin, round or adjustment that has a request id, and its response',
      findRequest,
      group,
    )
    .addHelpText(
      'after',
      `
Spins and rounds are found as long as the service keeps their request ids; tickets and adjustments forever. For an older spin
use the statement of the player by time: spindle player statement PARTNER PLAYER_ID --from DATE --to DATE.

Example:
  spindle request find acme 0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e`,
    );
}

async function findRequest({ client, words, print }: Call): Promise<void> {
  const path = { id: await partnerIdOf(client, words[0]!) };
  const params = { path, query: { requestId: words[1]! } };
  const found = await bodyOf(client.GET('/partners/{id}/requests', { params }));
  const { spins, rounds, adjustment, refusedAdjustments } = found;
  if (spins.length + rounds.length + refusedAdjustments.length === 0 && adjustment === null)
    throw new NotFoundError(
      'Nothing has this request id. The request never came, was refused, or is older than the service keeps request ids.',
    );
  print(found, foundLines);
}

function foundLines({ spins, rounds, adjustment, refusedAdjustments }: Schemas['FoundRequest']): string {
  const found = [
    ...spins.map(({ partnerId, spin, entry, block }) => {
      // The presentation is long and meant for players, so only --json prints it.
      const { presentation, ...answered } = spin;
      return `Spin\n${keyValues({ partnerId, ...answered, entry, block })}`;
    }),
    ...rounds.map((round) => `Round\n${keyValues(round)}`),
    ...(adjustment === null ? [] : [`Adjustment\n${keyValues(adjustment)}`]),
    ...refusedAdjustments.map((refused) => `Refused adjustment\n${keyValues(refused)}`),
  ];
  return found.join('\n');
}
