import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { Page, pageMembers, timestamp } from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';
export const TEXT = { maxLength: 200 };
export const AuditQuery = Type.Object({
  ...Page.properties,
  actor: Type.Optional(Type.String({ ...TEXT, description: 'Changes by this operator' })),
  action: Type.Optional(
    Type.String({ ...TEXT, description: 'Actions that begin so, such as `partner.` or `key.issue`' }),
  ),
  subject: Type.Optional(Type.String({ ...TEXT, description: 'Subjects that begin so, such as `game:7`' })),
});
export const AuditEntry = Type.Object({
  auditId: Type.Integer(),
  at: timestamp(),
  actor: Type.String(),
  action: Type.String(),
  subject: Type.String(),
  before: Type.Unknown(),
  after: Type.Unknown(),
  hash: Type.String({
    description:
      'SHA-256 over the hash of the entry before and this entry, hexadecimal: that of the newest stands for the whole log',
  }),
});
export const AuditLog = Type.Object({
  entries: Type.Array(AuditEntry),
  ...pageMembers,
});
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
