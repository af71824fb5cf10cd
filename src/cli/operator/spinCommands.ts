/** `spindle spin show`: shows one spin with its ledger entry and its block. */
import { bodyOf } from '../../api/client/apiClients.js';
import { keyValues } from '../output.js';
import type { Call, OperatorCommands } from './call.js';

export function addSpinCommands(commands: OperatorCommands): void {
  const group = commands.group('spin', 'spins');
  commands.add('show <SPIN_ID>', 'show a spin with its ledger entry and its block', showSpin, group);
}

async function showSpin({ client, words, print }: Call): Promise<void> {
  const params = { path: { spinId: words[0]! } };
  print(await bodyOf(client.GET('/spins/{spinId}', { params })), ({ partnerId, spin, entry, block }) => {
    // The presentation is long and meant for players, so only --json prints it.
    const { presentation, ...answered } = spin;
    return keyValues({ partnerId, ...answered, entry, block });
  });
}
