/** `spindle api`: shows the versions of the partner API with their use, and announces their end. */
import { endVersion } from '../../api/client/views/service.js';
import { isDay } from '../../domain/days.js';
import { keyValues, type TableColumn, table } from '../output.js';
import { type OperatorCommands, type Schemas, withReason } from './call.js';

export function addApiVersionCommands(commands: OperatorCommands): void {
  const group = commands.group('api', 'versions of the partner API');
  commands.request('list', 'list the versions and the partners that use them', group, 'GET /api-versions', {
    plain: ({ versions }) =>
      versions.map(({ partners, ...version }) => `${keyValues(version)}${table(USES, partners)}`).join('\n'),
  });
  withReason(
    commands.change(
      'deprecate <VERSION>',
      'announce or postpone the end of a version',
      group,
      ({ sunset }) => endVersion(timeOf(sunset)!),
      {
        body: ({ deprecatedAt, successor, migrationUrl }) => ({
          ...{ deprecatedAt: timeOf(deprecatedAt), successor, migrationUrl },
        }),
      },
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

const timeOf = (given: unknown): string | undefined =>
  typeof given === 'string' && isDay(given) ? `${given}T00:00:00Z` : (given as string | undefined);
