/**
 * `spindle settlement`: lists, shows and generates settlement reports. `settlement verify` opens the stores
 * (storeCommands.ts).
 */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { UsageError, wholeNumber } from '../command.js';
import { keyValues, type TableColumn, table } from '../output.js';
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
    commands.add('make <PARTNER> <DATE>', 'make a report now, or a new revision of it', make, group),
  ).addHelpText(
    'after',
    `
Workers make the reports of each past day by themselves. Use this command to answer a dispute, or to make a report earlier.

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
  const { client, words, print } = call;
  const path = { id: await partnerIdOf(client, words[0]!), date: words[1]! };
  const params = { path, query: auditReasonOf(call) };
  if (params.query.reason === undefined && (await isDisputed(call, path)))
    throw new UsageError(
      'The report is disputed. Add --reason TEXT with the answer to the dispute; the audit log keeps it.',
    );
  print(await bodyOf(client.POST('/partners/{id}/settlements/{date}', { params })), reportLines);
}

/** Returns whether the newest revision is disputed; false if there is no report. */
async function isDisputed({ client }: Call, path: { id: number; date: string }): Promise<boolean> {
  const { data } = await client.GET('/partners/{id}/settlements/{date}', { params: { path, query: {} } });
  return (data as Schemas['SettlementReport'] | undefined)?.reportStatus === 'DISPUTED';
}
