/** `spindle audit-log`: shows the audit log. */
import { type TableColumn, table } from '../output.js';
import { type OperatorCommands, pageLine, type Schemas, withCsv, withPages, withTimeRange } from './call.js';

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
        commands.request(
          'audit-log',
          'list the changes and their authors, newest first',
          undefined,
          'GET /audit-log',
          { plain: (body) => table(COLUMNS, body.entries) + pageLine(body, 'entries') },
        ),
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

/** Returns the properties that an audit log entry records as changed; for a new object all properties. */
function changeOf({ before, after }: Schemas['AuditEntry']): string {
  const was = (before ?? {}) as Record<string, unknown>;
  const text = (value: unknown): string => JSON.stringify(value) ?? '-';
  return Object.entries(after ?? {})
    .filter(([name, value]) => text(was[name]) !== text(value))
    .map(([name, value]) => `${name} ${before === null ? '' : `${text(was[name])} → `}${text(value)}`)
    .join(', ');
}
