/** Schemas and operations of versions of the partner API, and of the build of the service. */
import { type Static, Type } from '#typebox';
import { ApiVersionUse } from '../../domain/apiVersion.js';
import { AUDIT_REASON, choice, nullable, timestamp } from '../../domain/schema.js';
import { API_VERSION } from '../contract/apis.js';
import { endpointsOf } from '../contract/endpoint.js';

const { operator } = endpointsOf('API versions');

export const VersionResponse = Type.Object({
  version: Type.String(),
  apiVersion: Type.String(),
  service: Type.String(),
  requestIdBindsSeconds: Type.Integer({
    description:
      'Minimum time for which a repetition of the requestId of a spin or deal gets the original response, in seconds',
  }),
  manifest: nullable(
    Type.String({
      description:
        'SHA-256 of the build manifest, hexadecimal. It identifies the build of the process that answers; null if there is no manifest.',
    }),
  ),
});

/**
 * Pattern of a migration URL. It excludes characters that could end a header line or the angle brackets of a
 * Link header.
 */
const MIGRATION_URL_PATTERN = '^https?://[!#-;=?-~]{1,2000}$';
const VERSION_PATTERN = '^v[1-9][0-9]{0,3}$';

export const DeprecateBody = Type.Object({
  sunsetAt: Type.String({ description: 'RFC 3339 time from which the version answers with status 410' }),
  deprecatedAt: Type.Optional(
    Type.String({
      description: 'RFC 3339 time from which the version is deprecated, not in the past. Default: now.',
    }),
  ),
  successor: Type.Optional(
    nullable(Type.String({ pattern: VERSION_PATTERN, description: 'Version that replaces this version' })),
  ),
  migrationUrl: Type.Optional(
    nullable(
      Type.String({
        pattern: MIGRATION_URL_PATTERN,
        description: 'URL of a page that explains how to migrate',
      }),
    ),
  ),
  reason: Type.Optional(AUDIT_REASON),
});

export const ApiVersionStatus = choice(
  ['ACTIVE', 'DEPRECATED', 'SUNSET'],
  '`SUNSET`: the version answers with status 410',
);

const versionMembers = {
  version: Type.String(),
  status: ApiVersionStatus,
  deprecatedAt: nullable(timestamp()),
  sunsetAt: nullable(timestamp()),
  successor: nullable(Type.String()),
  migrationUrl: nullable(Type.String()),
};

export const ApiVersion = Type.Object(versionMembers);

export const ListedApiVersion = Type.Object({
  ...versionMembers,
  partners: Type.Array(ApiVersionUse, {
    description: 'Partners that have used the version, latest use first',
  }),
});

export const ApiVersionList = Type.Object({ versions: Type.Array(ListedApiVersion) });

export type DeprecateBody = Static<typeof DeprecateBody>;

const VERSION = {
  version: 'v1',
  status: 'DEPRECATED',
  deprecatedAt: '2026-11-22T04:14:04.632Z',
  sunsetAt: '2028-01-01T00:00:00.000Z',
  successor: 'v2',
  migrationUrl: 'https://docs.acme.example/v2',
};

export const listApiVersions = operator.get('listApiVersions', '/api-versions', {
  summary: 'List the versions of the partner API and the partners that use them',
  description: 'Lists when each version of the partner API ends, and which partners have recently used it.',
  response: ApiVersionList,
  example: {
    versions: [
      {
        ...VERSION,
        partners: [{ partnerId: 2, slug: 'acme', lastUsedAt: '2026-11-22T04:14:01.783Z', requests24h: 19 }],
      },
    ],
  },
});

export const deprecateApiVersion = operator.post('deprecateApiVersion', '/api-versions/{version}/deprecate', {
  summary: 'Announce or postpone the end of a version of the partner API',
  description:
    'From now on every response of the version has the headers Deprecation, Sunset and Link. After the sunset the version answers with status 410. Every active webhook gets `api.version.deprecated` now, and again 30 days, 7 days and 1 day before the sunset.',
  body: DeprecateBody,
  response: ApiVersion,
  bodyExample: {
    sunsetAt: '2028-01-01T00:00:00Z',
    successor: 'v2',
    migrationUrl: 'https://docs.acme.example/v2',
  },
  example: VERSION,
});

export const getVersion = endpointsOf('Service').partner.get('getVersion', '/version', {
  summary: 'Get the version of the API',
  description: 'Use this small request to try out a key. It changes nothing.',
  response: VersionResponse,
  example: {
    version: API_VERSION,
    apiVersion: 'v1',
    service: 'spindle',
    requestIdBindsSeconds: 259_200,
    manifest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  },
});
