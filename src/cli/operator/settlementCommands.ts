/**
 * `spindle settlement`: lists, shows and generates settlement reports. `settlement verify` opens the stores
 * (storeCommands.ts).
 */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { UsageError, wholeNumber } from '../command.js';
import { withYes } from '../confirm.js';
import { formatUsd, keyValues, printable, type TableColumn, table } from '../output.js';
import {
  auditReasonOf,
  type Call,
  type OperatorCommands,
  pageLine,
  pageOf,
  type Schemas,
  withPages,
  withReason,
} from './call.js';
import { partnerIdOf } from './names.js';

const COLUMNS: readonly TableColumn<Schemas['ListedSettlement']>[] = [
  { heading: 'date', value: (row) => row.reportDate },
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'slug', value: (row) => row.slug },
  { heading: 'revision', value: (row) => row.revision, kind: 'number' },
  { heading: 'status', value: (row) => row.reportStatus },
  { heading: 'spins', value: (row) => row.totalSpins, kind: 'number' },
  { heading: 'GGR USD', value: (row) => row.ggrUsd, kind: 'usd' },
  { heading: 'dispute', value: (row) => row.disputeReason },
];

const GAMES: readonly TableColumn<Schemas['SettlementGame']>[] = [
  { heading: 'game', value: (row) => row.gameConfigId, kind: 'number' },
  { heading: 'config', value: (row) => row.configName },
  { heading: 'spins', value: (row) => row.spins, kind: 'number' },
  { heading: 'wagered USD', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'paid USD', value: (row) => row.paidOutUsd, kind: 'usd' },
  { heading: 'GGR USD', value: (row) => row.ggrUsd, kind: 'usd' },
];

export function addSettlementCommands(commands: OperatorCommands): void {
  const group = commands.group('settlement', 'settlement reports');
  withPages(
    commands.add('list', 'list the newest revision of each report, newest day first', list, group),
    'reports',
  )
    // The choices of the option are in lower case for easier typing; the API uses upper case.
    .addOption(
      new Option('--status <STATUS>', 'only reports with this status').choices([
        'pending',
        'generated',
        'acknowledged',
        'disputed',
      ]),
    );
  commands
    .add('show <PARTNER> <DATE>', 'show the report of a partner for a UTC day, YYYY-MM-DD', show, group)
    .addOption(
      new Option('--revision <N>', 'number of the revision (default: the newest)').argParser(wholeNumber),
    );
  withReason(
    withYes(commands.add('make <PARTNER> <DATE>', 'make a report now, or a new revision of it', make, group)),
  ).addHelpText(
    'after',
    `
Workers make the reports of each past day by themselves. Use this command to answer a dispute, or to make a report earlier.
If the report is disputed, the command shows what the new revision changes, and asks. --reason is then the answer.

Examples:
  spindle settlement list --status disputed
  spindle settlement show acme 2026-11-21 --revision 1
  spindle settlement make acme 2026-11-21 --reason "two spins belong to the previous day"`,
  );
}

async function list(call: Call): Promise<void> {
  const { client, options, print } = call;
  const status = (options.status as string | undefined)?.toUpperCase();
  const query = { ...pageOf(call), ...(status === undefined ? {} : { status }) };
  print(
    await bodyOf(client.GET('/settlements', { params: { query } })),
    (body) => table(COLUMNS, body.reports) + pageLine(body, 'reports'),
  );
}

function reportLines({ gameBreakdown, ...report }: Schemas['SettlementReport']): string {
  return keyValues(report) + table(GAMES, gameBreakdown);
}

async function show({ client, words, options, print }: Call): Promise<void> {
  const path = { id: await partnerIdOf(client, words[0]!), date: words[1]! };
  const query = options.revision === undefined ? {} : { revision: options.revision as number };
  const call = client.GET('/partners/{id}/settlements/{date}', { params: { path, query } });
  // The answer is JSON, because the service sends CSV only on explicit request.
  print((await bodyOf(call)) as Schemas['SettlementReport'], reportLines);
}

async function make(call: Call): Promise<void> {
  const { client, words, options, print } = call;
  const path = { id: await partnerIdOf(client, words[0]!), date: words[1]! };
  const query = auditReasonOf(call);
  if (query.reason === undefined || options.yes !== true) await confirmRevision(call, path);
  print(
    await bodyOf(client.POST('/partners/{id}/settlements/{date}', { params: { path, query } })),
    reportLines,
  );
}

/** Asks before a disputed report gets its next revision, and shows what would differ. */
async function confirmRevision(call: Call, path: { id: number; date: string }): Promise<void> {
  const { client, options, confirm } = call;
  const { report, disputed } = await bodyOf(
    client.GET('/partners/{id}/settlements/{date}/preview', { params: { path } }),
  );
  if (disputed === null) return;
  if (options.reason === undefined)
    throw new UsageError(
      `Revision ${disputed.revision} is disputed: «${printable(disputed.disputeReason)}». Add --reason TEXT with the answer to the dispute; the audit log keeps it.`,
    );
  const rows = differences(disputed, report);
  const shown =
    rows.length === 0
      ? `Revision ${report.revision} will have the same figures as the disputed revision ${disputed.revision}.`
      : table(
          [
            { heading: 'figure', value: ([figure]) => figure },
            {
              heading: `disputed revision ${disputed.revision}`,
              value: ([, before]) => before,
              kind: 'number',
            },
            { heading: `new revision ${report.revision}`, value: ([, , after]) => after, kind: 'number' },
          ],
          rows,
        ).trimEnd();
  await confirm(
    `The partner disputes revision ${disputed.revision}: «${printable(disputed.disputeReason)}».\n${shown}\nThis will make revision ${report.revision}, which answers the dispute and replaces the disputed revision for the partner. Both stay on record.`,
  );
}

type Figures = Schemas['NextSettlementReport'];
type Difference = readonly [figure: string, before: string, after: string];

/** Figures of a report by name, of the whole day and of each game. */
function figuresOf(report: Figures): Map<string, string> {
  const figures: [string, unknown][] = [
    ['spins', report.totalSpins],
    ['wageredUsd', report.totalWageredUsd],
    ['paidOutUsd', report.totalPaidOutUsd],
    ['ggrUsd', report.ggrUsd],
    ['communityBonusUsd', report.communityBonusUsd],
    ['adjustmentsUsd', report.adjustmentsUsd],
    ['openRounds', report.openRounds],
    ['openWageredUsd', report.openWageredUsd],
    ...report.gameBreakdown.flatMap((game): [string, unknown][] => [
      [`${game.configName} spins`, game.spins],
      [`${game.configName} wageredUsd`, game.wageredUsd],
      [`${game.configName} paidOutUsd`, game.paidOutUsd],
      [`${game.configName} communityBonusUsd`, game.communityBonusUsd],
    ]),
  ];
  return new Map(
    figures.map(([name, value]) => [name, name.endsWith('Usd') ? formatUsd(value) : printable(value)]),
  );
}

/** Returns the figures that differ between two revisions. A figure that a revision lacks is shown as `-`. */
function differences(before: Figures, after: Figures): Difference[] {
  const [was, is] = [figuresOf(before), figuresOf(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .map((name): Difference => [name, was.get(name) ?? '-', is.get(name) ?? '-'])
    .filter(([, old, now]) => old !== now);
}
