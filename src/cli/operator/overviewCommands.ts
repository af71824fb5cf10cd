/** `spindle overview`: shows today's traffic and the items that need attention, once or repeatedly. */
import { bodyOf } from '../../api/client/apiClients.js';
import { WEBHOOKS } from '../../api/client/views/service.js';
import type { Column } from '../../api/client/views/view.js';
import { keyValues, listOf, printable, type TableColumn, table } from '../output.js';
import { type Call, type OperatorCommands, type Schemas, withWatch } from './call.js';

const BUSIEST: readonly TableColumn<Schemas['PartnerTraffic']>[] = [
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'slug', value: (row) => row.slug },
  { heading: 'spins', value: (row) => row.spins, kind: 'number' },
  { heading: 'wagered USD', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'paid USD', value: (row) => row.paidOutUsd, kind: 'usd' },
];

const FAILING: readonly Column<Schemas['FailingWebhook']>[] = [
  { heading: 'Partner', value: (row) => row.slug },
  ...WEBHOOKS,
];

export function addOverviewCommands(commands: OperatorCommands): void {
  withWatch(
    commands.add('overview', 'show the traffic of today and everything that needs attention', overview),
  );
}

async function overview({ client, print }: Call): Promise<void> {
  print(
    await bodyOf(client.GET('/overview')),
    ({ at, problems, today, yesterday, attention, busiest, failingWebhooks }) =>
      [
        ...(problems.length === 0 ? [] : [problemsText(problems)]),
        keyValues({ at, today, yesterday, attention }),
        ...(failingWebhooks.length === 0 ? [] : [listOf(FAILING, failingWebhooks)]),
        table(BUSIEST, busiest),
      ].join('\n'),
  );
}

const [RED, PLAIN] = ['\x1b[31m', '\x1b[0m'];

/** Formats the problems, in red on a terminal if they affect spins or the work behind them. */
function problemsText(problems: readonly Schemas['Problem'][]): string {
  const lines = problems.map(({ effect, message, since, spins, help }) => {
    const line = `${printable(message)} (since ${since})\n  ${printable(spins)}. ${printable(help)}.\n`;
    return effect !== 'ATTENTION' && process.stdout.isTTY ? `${RED}${line}${PLAIN}` : line;
  });
  return lines.join('');
}
