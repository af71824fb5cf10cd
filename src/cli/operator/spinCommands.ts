/** `spindle spin show`: shows one spin with its ledger entry and its block. */
import { keyValues } from '../output.js';
import type { OperatorCommands } from './call.js';

export function addSpinCommands(commands: OperatorCommands): void {
  const group = commands.group('spin', 'spins');
  const about = 'show a spin with its ledger entry and its block';
  commands.request('show <SPIN_ID>', about, group, 'GET /spins/{spinId}', {
    plain: ({ partnerId, spin, entry, block }) => {
      // The presentation is long and meant for players, so only --json prints it.
      const { presentation, ...answered } = spin;
      return keyValues({ partnerId, ...answered, entry, block });
    },
  });
}
