/** Descriptions and examples: versions and the audit log. */
import type { References } from './operationReference.js';

const VERSION = {
  version: 'v1',
  status: 'DEPRECATED',
  deprecatedAt: '2026-11-22T04:14:04.632Z',
  sunsetAt: '2028-01-01T00:00:00.000Z',
  successor: 'v2',
  migrationUrl: 'https://docs.acme.example/v2',
};

export const SERVICE_REFERENCES: References = {
  getVersion: {
    description: 'A small request for trying out a key: it changes nothing.',
    response: { version: '1.0.0', apiVersion: 'v1', service: 'spindle', requestIdBindsSeconds: 259_200 },
  },
  listAuditLog: {
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
        },
      ],
      page: 1,
      limit: 20,
      total: 22,
    },
  },
  listApiVersions: {
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
  deprecateApiVersion: {
    request: {
      sunsetAt: '2028-01-01T00:00:00Z',
      successor: 'v2',
      migrationUrl: 'https://docs.acme.example/v2',
    },
    response: VERSION,
  },
};
