/** Schemas of an entry of the audit log and of the query that filters entries. */
import { Type } from '#typebox';
import { escapeFormulas, Page, timeRange, timestamp } from './schema.js';

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
