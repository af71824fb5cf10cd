/** `spindle dealing`: shows and sets the global dealing switch of all games. */
import { RESUME_DEALING, STOP_DEALING } from '../../api/client/views/service.js';
import { forReason, type OperatorCommands } from './call.js';

export function addDealingCommands(commands: OperatorCommands): void {
  const group = commands.group('dealing', 'dealing in all games');
  commands.request('show', 'show whether dealing is on for all games', group, 'GET /dealing', {
    isDefault: true,
  });
  const name = 'all partners';
  forReason(commands.change('off', 'stop dealing for all games', group, STOP_DEALING, { name }));
  forReason(commands.change('on', 'resume dealing for all games', group, RESUME_DEALING, { name }));
}
