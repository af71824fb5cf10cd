/** `spindle dealing`: shows and sets the global dealing switch of all games. */
import { bodyOf } from '../../api/client/apiClients.js';
import { withYes } from '../confirm.js';
import { keyValues } from '../output.js';
import { type Call, forReason, type OperatorCommands } from './call.js';

export function addDealingCommands(commands: OperatorCommands): void {
  const group = commands.group('dealing', 'dealing in all games');
  commands.add('show', 'show whether dealing is on for all games', showDealing, group, { isDefault: true });
  forReason(withYes(commands.add('off', 'stop dealing for all games', stopDealing, group)));
  forReason(commands.add('on', 'resume dealing for all games', setDealing('ON'), group));
}

async function showDealing({ client, print }: Call): Promise<void> {
  print(await bodyOf(client.GET('/dealing')), keyValues);
}

async function stopDealing(call: Call): Promise<void> {
  await call.confirm(
    'This will stop dealing for all partners. Within a second all their spins, tickets and deals are refused, until dealing is switched on again. Open rounds can be finished.',
  );
  await setDealing('OFF')(call);
}

const setDealing =
  (state: 'ON' | 'OFF') =>
  async ({ client, options, print }: Call): Promise<void> => {
    const body = { state, reason: String(options.reason) };
    print(await bodyOf(client.PUT('/dealing', { body })), keyValues);
  };
