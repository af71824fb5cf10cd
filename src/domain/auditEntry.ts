/** Schemas of an entry of the audit log and of the query that filters entries. */
import { Type } from '#typebox';
import { Page, timestamp } from './schema.js';

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

const TEXT = { maxLength: 200 };

export const AuditQuery = Type.Object({
  ...Page.properties,
  actor: Type.Optional(Type.String({ ...TEXT, description: 'Changes by this operator' })),
  action: Type.Optional(
    Type.String({ ...TEXT, description: 'Actions that begin so, such as `partner.` or `key.issue`' }),
  ),
  subject: Type.Optional(Type.String({ ...TEXT, description: 'Subjects that begin so, such as `game:7`' })),
});
