/** Schemas of an entry of the audit log and of the query that filters entries. */
import { Type } from '#typebox';
import { escapeFormulas, nullable, Page, timeRange, timestamp } from './schema.js';

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
      "SHA-256 of the previous entry's hash and this entry, hexadecimal. The hash of the newest entry therefore covers the whole log",
  }),
});

export const StatusChange = Type.Object({
  auditId: Type.Integer({ description: 'Number of the change in the audit log' }),
  at: timestamp(),
  actor: Type.String({ description: 'Operator who made the change, or `worker`' }),
  status: Type.String({ description: 'Status after the change' }),
  reason: nullable(Type.String({ description: 'Reason of the change; null if none was given' })),
});

const TEXT = { maxLength: 200 };

export const AuditQuery = Type.Object({
  ...Page.properties,
  actor: Type.Optional(Type.String({ ...TEXT, description: 'Only changes by this operator' })),
  action: Type.Optional(
    Type.String({
      ...TEXT,
      description: 'Only actions that begin with this text, such as `partner.` or `key.issue`',
    }),
  ),
  subject: Type.Optional(
    Type.String({ ...TEXT, description: 'Only subjects that begin with this text, such as `game:7`' }),
  ),
  ...timeRange,
  escapeFormulas,
});
