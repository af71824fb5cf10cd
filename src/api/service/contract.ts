/** Versions of the API and the audit log. */
import { ERRORS } from '../../domain/errors.js';
import { API_VERSION } from '../contract/apis.js';
import { endpoint } from '../contract/endpoint.js';
import {
  ApiVersion,
  ApiVersionList,
  AuditLog,
  AuditQuery,
  DeprecateBody,
  PATH,
  VersionResponse,
} from '../contract/requests.js';

const VERSION = {
  version: 'v1',
  status: 'DEPRECATED',
  deprecatedAt: '2026-11-22T04:14:04.632Z',
  sunsetAt: '2028-01-01T00:00:00.000Z',
  successor: 'v2',
  migrationUrl: 'https://docs.acme.example/v2',
};
export const listApiVersions = endpoint(
  {
    method: 'get',
    path: '/api-versions',
    operationId: 'listApiVersions',
    tag: 'API versions',
    summary: 'The versions of the partner API, and which partners use them',
    scope: 'operator',
    status: 200,
    response: ApiVersionList,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Shows when each version of the partner API ends and which partners still used it.',
    response: {
      versions: [
        {
          ...VERSION,
          partners: [{ partnerId: 2, slug: 'acme', lastUsedAt: '2026-11-22T04:14:01.783Z', requests24h: 19 }],
        },
      ],
    },
  },
);

export const deprecateApiVersion = endpoint(
  {
    method: 'post',
    path: '/api-versions/{version}/deprecate',
    params: { version: PATH.apiVersion },
    operationId: 'deprecateApiVersion',
    tag: 'API versions',
    summary: 'Announce when a version of the partner API ends, or move its end later',
    scope: 'operator',
    body: DeprecateBody,
    status: 200,
    response: ApiVersion,
    errors: [ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'From now on every answer of the version has the headers Deprecation, Sunset and Link; after the sunset it answers 410. Every active webhook gets `api.version.deprecated`, now and 30, 7 and 1 days before the sunset.',
    request: {
      sunsetAt: '2028-01-01T00:00:00Z',
      successor: 'v2',
      migrationUrl: 'https://docs.acme.example/v2',
    },
    response: VERSION,
  },
);

export const listAuditLog = endpoint(
  {
    method: 'get',
    path: '/audit-log',
    operationId: 'listAuditLog',
    tag: 'Audit log',
    summary: 'What was changed, by whom, newest first',
    scope: 'operator',
    query: AuditQuery,
    status: 200,
    response: AuditLog,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Lists the changes with who, when, what, before and after, the newest first.',
    response: {
      entries: [
        {
          auditId: 22,
          at: '2026-11-22T04:14:04.600Z',
          actor: 'operator',
          action: 'key.revoke',
          subject: 'key:2',
          before: { revokedAt: null },
          after: { revokedAt: '2026-11-22T04:14:04.600Z' },
          hash: '2c624232cc1e2fd2b0a5d3f6ff6e1d3b0a24f4ba5f3a5a1c7d9e8f0b6a7c8d9e',
        },
      ],
      page: 1,
      limit: 20,
      total: 22,
    },
  },
);

export const getVersion = endpoint(
  {
    method: 'get',
    path: '/version',
    operationId: 'getVersion',
    tag: 'Service',
    summary: 'Version of the API',
    scope: 'partner',
    status: 200,
    response: VersionResponse,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'A small request for trying out a key: it changes nothing.',
    response: {
      version: API_VERSION,
      apiVersion: 'v1',
      service: 'spindle',
      requestIdBindsSeconds: 259_200,
      manifest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    },
  },
);
