/** `spindle api`: shows the versions of the partner API with their use, and announces their end. */
import { bodyOf } from '../../api/client/apiClients.js';
import { withYes } from '../confirm.js';
import { keyValues, type TableColumn, table } from '../output.js';
import { auditReasonOf, type Call, type OperatorCommands, type Schemas, withReason } from './call.js';

export function addApiVersionCommands(commands: OperatorCommands): void {
  const group = commands.group('api', 'versions of the partner API');
  commands.add('list', 'list the versions and the partners that use them', list, group);
  withReason(
    withYes(
      commands.add('deprecate <VERSION>', 'announce or postpone the end of a version', deprecate, group),
    ),
  )
    .requiredOption(
      '--sunset <TIME>',
      'end of the version: an RFC 3339 time, or a day, which means 00:00:00 UTC',
    )
    .option('--deprecated-at <TIME>', 'start of the deprecation, in the same format (default: now)')
    .option('--successor <VERSION>', 'version that replaces it')
    .option('--migration-url <URL>', 'page that explains the migration')
    .addHelpText(
      'after',
      `
Examples:
  spindle api deprecate v1 --sunset 2027-12-31 --successor v2 --migration-url https://example.com/v2`,
    );
}

type Version = Schemas['ApiVersionList']['versions'][number];

const USES: readonly TableColumn<Version['partners'][number]>[] = [
  { heading: 'id', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'slug', value: (row) => row.slug },
  { heading: 'last used', value: (row) => row.lastUsedAt },
  { heading: 'requests 24 h', value: (row) => row.requests24h, kind: 'number' },
];

async function list({ client, print }: Call): Promise<void> {
  print(await bodyOf(client.GET('/api-versions')), ({ versions }) =>
    versions.map(({ partners, ...version }) => `${keyValues(version)}${table(USES, partners)}`).join('\n'),
  );
}

const timeOf = (text: string): string => (/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);

async function deprecate(call: Call): Promise<void> {
  const { client, words, options, print, confirm } = call;
  const { sunset, deprecatedAt, successor, migrationUrl } = options as Record<string, string | undefined>;
  await confirm(
    `This will notify partners that ${words[0]} ends at ${timeOf(sunset!)}. A notification can't be taken back.`,
  );
  const params = { path: { version: words[0]! } };
  const body = {
    sunsetAt: timeOf(sunset!),
    ...(deprecatedAt === undefined ? {} : { deprecatedAt: timeOf(deprecatedAt) }),
    ...(successor === undefined ? {} : { successor }),
    ...(migrationUrl === undefined ? {} : { migrationUrl }),
    ...auditReasonOf(call),
  };
  print(await bodyOf(client.POST('/api-versions/{version}/deprecate', { params, body })), keyValues);
}
