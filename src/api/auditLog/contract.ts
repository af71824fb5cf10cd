/**
 * Schemas and operations of the audit log, which records the actions of operators and the events of the
 * system.
 */
import { Type } from '#typebox';
import { AuditEntry, AuditQuery } from '../../domain/auditEntry.js';
import { pageMembers } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';

const { operator } = endpointsOf('Audit log');

export const AuditLog = Type.Object({
  entries: Type.Array(AuditEntry),
  ...pageMembers,
});

export const listAuditLog = operator.get('listAuditLog', '/audit-log', {
  summary: 'List the entries of the audit log, newest first (CSV with `Accept: text/csv`)',
  description:
    'Lists the changes of operators and the system events, newest first: the time, the actor, the action, and the state before and after. CSV has all entries that match, regardless of `page` and `limit`, with `before` and `after` as JSON texts.',
  query: AuditQuery,
  response: AuditLog,
  example: {
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
  csvExample:
    'auditId,at,actor,action,subject,before,after,hash\r\n22,"2026-11-22T04:14:04.600Z","operator","key.revoke","key:2","{""revokedAt"":null}","{""revokedAt"":""2026-11-22T04:14:04.600Z""}","2c624232cc1e2fd2b0a5d3f6ff6e1d3b0a24f4ba5f3a5a1c7d9e8f0b6a7c8d9e"\r\n',
});
