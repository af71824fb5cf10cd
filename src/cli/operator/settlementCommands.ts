/**
 * `spindle settlement`: lists, shows and generates settlement reports. `settlement verify` opens the stores
 * (storeCommands.ts).
 */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { differences, SETTLED_GAMES, SETTLEMENTS } from '../../api/client/views/reports.js';
import { UsageError, wholeNumber } from '../command.js';
import { withYes } from '../confirm.js';
import { keyValues, listOf, nameOf, printable, table, textAs } from '../output.js';
import {
  auditReasonOf,
  type Call,
  inCapitals,
  type OperatorCommands,
  pageLine,
  type Schemas,
  withPages,
  withReason,
} from './call.js';
import { partnerIdOf } from './names.js';

export function addSettlementCommands(commands: OperatorCommands): void {
  const group = commands.group('settlement', 'settlement reports');
  withPages(
    commands.request(
      'list',
      'list the newest revision of each report, newest day first',
      group,
      'GET /settlements',
      { plain: (body) => listOf(SETTLEMENTS, body.reports) + pageLine(body, 'reports') },
    ),
    'reports',
  ).addOption(
    inCapitals(
      new Option('--status <STATUS>', 'only reports with this status').choices([
        'pending',
        'generated',
        'acknowledged',
        'disputed',
      ]),
    ),
  );
  commands
    .request(
      'show <PARTNER> <DATE>',
      'show the report of a partner for a UTC day, YYYY-MM-DD',
      group,
      'GET /partners/{id}/settlements/{date}',
      { plain: reportLines },
    )
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

function reportLines({ gameBreakdown, ...report }: Schemas['SettlementReport']): string {
  return keyValues(report) + listOf(SETTLED_GAMES, gameBreakdown);
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
            { heading: 'figure', value: ([figure]) => nameOf(figure) },
            {
              heading: `disputed revision ${disputed.revision}`,
              value: ([{ kind }, before]) => textAs(kind, before),
              kind: 'number',
            },
            {
              heading: `new revision ${report.revision}`,
              value: ([{ kind }, , after]) => textAs(kind, after),
              kind: 'number',
            },
          ],
          rows,
        ).trimEnd();
  await confirm(
    `The partner disputes revision ${disputed.revision}: «${printable(disputed.disputeReason)}».\n${shown}\nThis will make revision ${report.revision}, which answers the dispute and replaces the disputed revision for the partner. Both stay on record.`,
  );
}
