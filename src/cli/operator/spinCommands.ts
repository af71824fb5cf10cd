/** `spindle spin show`: one spin with all that is known of it. */
import { bodyOf } from '../../api/client/apiClients.js';
import { keyValues } from '../output.js';
import type { Call, OperatorCommands } from './call.js';

/** Adds the command to the program. */
export function addSpinCommands(commands: OperatorCommands): void {
  const group = commands.group('spin', 'spins');
  commands.add('show <SPIN_ID>', 'a spin, its ledger entry and its block', showSpin, group);
}

async function showSpin({ client, words, print }: Call): Promise<void> {
  const params = { path: { spinId: words[0]! } };
  print(await bodyOf(client.GET('/spins/{spinId}', { params })), ({ partnerId, spin, entry, block }) => {
    // For players, and long; --json has it.
    const { presentation, ...answered } = spin;
    return keyValues({ partnerId, ...answered, entry, block });
  });
}
