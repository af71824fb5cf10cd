/** `spindle cells`: lists the cells, adds cells, and drains a cell of its partners. */
import { bodyOf } from '../../api/client/apiClients.js';
import { CELLS, RECOVERIES } from '../../api/client/views/service.js';
import { UsageError, wholeNumber } from '../command.js';
import { keyValues, listOf } from '../output.js';
import { auditReasonOf, type Call, note, type OperatorCommands, withReason, withWatch } from './call.js';
import { movePartnersOff } from './moves.js';

export function addCellCommands(commands: OperatorCommands): void {
  const group = commands.group('cells', 'cells');
  withWatch(
    commands.request('list', 'list the cells, Redis servers and recoveries', group, 'GET /cells', {
      plain: ({ cells, redis, recoveries }) =>
        [
          listOf(CELLS, cells),
          redis.map((server, i) => keyValues({ redis: i, ...server })).join('\n'),
          listOf(RECOVERIES, recoveries),
        ].join('\n'),
      isDefault: true,
    }),
  );
  commands
    .request('add <COUNT>', 'add cells; running processes use them without a restart', group, 'POST /cells', {
      body: (_, [count]) => ({ count: numberOf(count!) }),
      plain: ({ added }) => `Added: ${added.join(', ')}\n`,
    })
    .addHelpText('after', "\nNew partners are placed on the new cells. Cells can't be removed.");
  withReason(commands.add('drain <CELL>', 'place no new partners on a cell', drain, group))
    .option('--undo', 'place new partners on the cell again')
    .option('--move-partners', 'also move its partners to other cells (may be repeated)');
}

function numberOf(word: string): number {
  try {
    return wholeNumber(word);
  } catch {
    throw new UsageError(`«${word}» is not a whole number`);
  }
}

async function drain(call: Call): Promise<void> {
  const { client, words, options, print } = call;
  const reason = auditReasonOf(call);
  const cell = numberOf(words[0]!);
  const isDraining = options.undo !== true;
  const params = { path: { cell } };
  print(
    await bodyOf(client.PATCH('/cells/{cell}', { params, body: { isDraining, ...reason } })),
    () => `Cell ${cell} accepts ${isDraining ? 'no ' : ''}new partners.\n`,
  );
  if (isDraining && options.movePartners === true)
    await movePartnersOff(client, cell, reason, (slug, to) => note(`Moved partner ${slug} to cell ${to}`));
}
