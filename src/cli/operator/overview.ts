/** `spindle overview` and `spindle cells`: what an operator looks at first, once or again and again. */
import { bodyOf } from '../../client/client.js';
import { type Column, keyValues, table } from '../output.js';
import { type Call, type OperatorCommands, type Schemas, withWatch } from './call.js';

const BUSIEST: readonly Column<Schemas['PartnerTraffic']>[] = [
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'slug', value: (row) => row.slug },
  { heading: 'spins', value: (row) => row.spins, kind: 'number' },
  { heading: 'wagered USD', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'paid USD', value: (row) => row.paidOutUsd, kind: 'usd' },
];

const CELLS: readonly Column<Schemas['OperatorCell']>[] = [
  { heading: 'cell', value: (row) => row.cell, kind: 'number' },
  { heading: 'epoch', value: (row) => row.epoch, kind: 'number' },
  { heading: 'owner', value: (row) => row.owner },
  { heading: 'booked to', value: (row) => row.bookedTo },
  { heading: 'outbox age s', value: (row) => row.outboxAgeSeconds, kind: 'number' },
  { heading: 'partners', value: (row) => row.partners, kind: 'number' },
  { heading: 'halted', value: (row) => row.halted },
];

const RECOVERIES: readonly Column<Schemas['Recovery']>[] = [
  { heading: 'recovered cell', value: (row) => row.cell, kind: 'number' },
  { heading: 'started', value: (row) => row.startedAt },
  { heading: 'finished', value: (row) => row.finishedAt },
  { heading: 'voided', value: (row) => row.voidedOutcomes, kind: 'number' },
  { heading: 'reason', value: (row) => row.reason },
];

/** Adds the commands to the program. */
export function addOverviewCommands(commands: OperatorCommands): void {
  withWatch(commands.add('overview', 'traffic of today, and what needs attention', overview));
  withWatch(commands.add('cells', 'cells, Redis servers and recoveries', cells));
}

async function overview({ client, print }: Call): Promise<void> {
  print(await bodyOf(client.GET('/overview')), ({ at, today, attention, busiest }) =>
    [keyValues({ at, today, attention }), table(BUSIEST, busiest)].join('\n'),
  );
}

async function cells({ client, print }: Call): Promise<void> {
  print(await bodyOf(client.GET('/cells')), (body) =>
    [
      table(CELLS, body.cells),
      body.redis.map((server, i) => keyValues({ redis: i, ...server })).join('\n'),
      table(RECOVERIES, body.recoveries),
    ].join('\n'),
  );
}
