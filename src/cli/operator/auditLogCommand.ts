/** `spindle audit-log`: shows the audit log. */
import { bodyOf } from '../../api/client/apiClients.js';
import { type TableColumn, table } from '../output.js';
import {
  type Call,
  CSV_QUERY,
  CSV_REQUEST,
  type OperatorCommands,
  pageLine,
  pageOf,
  type Schemas,
  timeRangeOf,
  withCsv,
  withPages,
  withTimeRange,
} from './call.js';

const COLUMNS: readonly TableColumn<Schemas['AuditEntry']>[] = [
  { heading: 'id', value: (row) => row.auditId, kind: 'number' },
  { heading: 'at', value: (row) => row.at },
  { heading: 'actor', value: (row) => row.actor },
  { heading: 'action', value: (row) => row.action },
  { heading: 'subject', value: (row) => row.subject },
  { heading: 'change', value: changeOf },
];

export function addAuditLogCommand(commands: OperatorCommands): void {
  withCsv(
    withTimeRange(
      withPages(
        commands.add('audit-log', 'list the changes and their authors, newest first', listAuditLog),
        'entries',
      ),
    ),
  )
    .option('--actor <NAME>', 'only changes by this operator')
    .option('--action <PREFIX>', 'only actions with this prefix, such as partner. or key.issue')
    .option('--subject <PREFIX>', 'only subjects with this prefix, such as game:7')
    .addHelpText(
      'after',
      `
Examples:
  spindle audit-log --actor jane.doe --limit 100
  spindle audit-log --action key. --subject partner:2
  spindle audit-log --from 2026-11-01 --to 2026-11-30 --csv > audit-log.csv`,
    );
}

async function listAuditLog(call: Call): Promise<void> {
  const { client, options, print } = call;
  const filters = ['actor', 'action', 'subject'].filter((name) => options[name] !== undefined);
  const filter = {
    ...Object.fromEntries(filters.map((name) => [name, options[name]])),
    ...timeRangeOf(call),
  };
  if (options.csv === true) {
    const params = { query: { limit: pageOf(call).limit, ...filter, ...CSV_QUERY } };
    process.stdout.write(String(await bodyOf(client.GET('/audit-log', { params, ...CSV_REQUEST }))));
    return;
  }
  const query = { ...pageOf(call), ...filter };
  print(
    (await bodyOf(client.GET('/audit-log', { params: { query } }))) as Schemas['AuditLog'],
    (body) => table(COLUMNS, body.entries) + pageLine(body, 'entries'),
  );
}

/** Returns the properties that an audit log entry records as changed; for a new object all properties. */
function changeOf({ before, after }: Schemas['AuditEntry']): string {
  const was = (before ?? {}) as Record<string, unknown>;
  const text = (value: unknown): string => JSON.stringify(value) ?? '-';
  return Object.entries(after ?? {})
    .filter(([name, value]) => text(was[name]) !== text(value))
    .map(([name, value]) => `${name} ${before === null ? '' : `${text(was[name])} → `}${text(value)}`)
    .join(', ');
}
