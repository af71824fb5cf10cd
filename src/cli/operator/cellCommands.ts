/** `spindle cells`: lists the cells, adds cells, and drains a cell of its partners. */
import { bodyOf } from '../../api/client/apiClients.js';
import { UsageError, wholeNumber } from '../command.js';
import { keyValues, type TableColumn, table } from '../output.js';
import {
  auditReasonOf,
  type Call,
  note,
  type OperatorCommands,
  type Schemas,
  withReason,
  withWatch,
} from './call.js';
import { movePartnersOff } from './moves.js';

const CELLS: readonly TableColumn<Schemas['OperatorCell']>[] = [
  { heading: 'cell', value: (row) => row.cell, kind: 'number' },
  { heading: 'node', value: (row) => row.node },
  { heading: 'slot', value: (row) => row.slot, kind: 'number' },
  { heading: 'epoch', value: (row) => row.epoch, kind: 'number' },
  { heading: 'worker', value: (row) => row.owner },
  { heading: 'committed to', value: (row) => row.bookedTo },
  { heading: 'lag s', value: (row) => row.outboxAgeSeconds, kind: 'number' },
  { heading: 'outbox', value: (row) => row.outboxEntries, kind: 'number' },
  { heading: 'partners', value: (row) => row.partners, kind: 'number' },
  { heading: 'games', value: (row) => row.games, kind: 'number' },
  { heading: 'draining', value: (row) => (row.isDraining ? 'yes' : 'no') },
  { heading: 'halted', value: (row) => row.halted },
];

const RECOVERIES: readonly TableColumn<Schemas['Recovery']>[] = [
  { heading: 'recovered cell', value: (row) => row.cell, kind: 'number' },
  { heading: 'started', value: (row) => row.startedAt },
  { heading: 'finished', value: (row) => row.finishedAt },
  { heading: 'voided', value: (row) => row.voidedOutcomes, kind: 'number' },
  { heading: 'reason', value: (row) => row.reason },
];

export function addCellCommands(commands: OperatorCommands): void {
  const group = commands.group('cells', 'cells');
  const isDefault = true;
  withWatch(
    commands.add('list', 'list the cells, Redis servers and recoveries', listCells, group, { isDefault }),
  );
  commands
    .add('add <COUNT>', 'add cells; running processes use them without a restart', addCells, group)
    .addHelpText('after', "\nNew partners are placed on the new cells. Cells can't be removed.");
  withReason(commands.add('drain <CELL>', 'place no new partners on a cell', drain, group))
    .option('--undo', 'place new partners on the cell again')
    .option('--move-partners', 'also move its partners to other cells (may be repeated)');
}

async function listCells({ client, print }: Call): Promise<void> {
  print(await bodyOf(client.GET('/cells')), (body) =>
    [
      table(CELLS, body.cells),
      body.redis.map((server, i) => keyValues({ redis: i, ...server })).join('\n'),
      table(RECOVERIES, body.recoveries),
    ].join('\n'),
  );
}

function numberOf(word: string): number {
  try {
    return wholeNumber(word);
  } catch {
    throw new UsageError(`«${word}» is not a whole number`);
  }
}

async function addCells({ client, words, print }: Call): Promise<void> {
  const body = { count: numberOf(words[0]!) };
  print(await bodyOf(client.POST('/cells', { body })), ({ added }) => `Added: ${added.join(', ')}\n`);
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
