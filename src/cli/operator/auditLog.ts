/** `spindle audit-log`: what was changed, by whom. */
import { Option } from 'commander';
import { bodyOf } from '../../client/client.js';
import { wholeNumber } from '../command.js';
import { type Column, table } from '../output.js';
import type { Call, OperatorCommands, Schemas } from './call.js';

const COLUMNS: readonly Column<Schemas['AuditEntry']>[] = [
  { heading: 'id', value: (row) => row.auditId, kind: 'number' },
  { heading: 'at', value: (row) => row.at },
  { heading: 'actor', value: (row) => row.actor },
  { heading: 'action', value: (row) => row.action },
  { heading: 'subject', value: (row) => row.subject },
  { heading: 'change', value: changeOf },
];

/** Adds the command to the program. */
export function addAuditLogCommand(commands: OperatorCommands): void {
  commands
    .add('audit-log', 'what was changed, by whom, newest first', listAuditLog)
    .addOption(new Option('--page <N>', 'from 1').argParser(wholeNumber).default(1))
    .addOption(
      new Option('--limit <N>', 'entries of a page, 100 at the most').argParser(wholeNumber).default(20),
    );
}

async function listAuditLog({ client, options, print }: Call): Promise<void> {
  const query = options as { page: number; limit: number };
  const params = { query: { page: query.page, limit: query.limit } };
  print(await bodyOf(client.GET('/audit-log', { params })), ({ entries, page, limit, total }) => {
    const pages = Math.max(1, Math.ceil(total / limit));
    return `${table(COLUMNS, entries)}page ${page} of ${pages}, ${total} entries\n`;
  });
}

/** The members that differ; of something new all that it has. */
function changeOf({ before, after }: Schemas['AuditEntry']): string {
  const was = (before ?? {}) as Record<string, unknown>;
  const text = (value: unknown): string => JSON.stringify(value) ?? '-';
  return Object.entries(after ?? {})
    .filter(([name, value]) => text(was[name]) !== text(value))
    .map(([name, value]) => `${name} ${before === null ? '' : `${text(was[name])} → `}${text(value)}`)
    .join(', ');
}
