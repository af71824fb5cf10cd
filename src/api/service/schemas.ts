/** What is not of one resource: the version, errors, the audit log. */

import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { nullable, pageMembers, timestamp } from '../../domain/schema.js';

export const VersionResponse = Type.Object({
  version: Type.String(),
  apiVersion: Type.String(),
  service: Type.String(),
  requestIdBindsSeconds: Type.Integer({
    description: 'For how long the requestId of a spin or deal binds at least, seconds',
  }),
  manifest: nullable(
    Type.String({
      description:
        "SHA-256 of the list of the program's files, hexadecimal: the build that answers; null where there is no list",
    }),
  ),
});

export const ErrorDetail = Type.Object({
  path: Type.String({ description: 'JSON Pointer (RFC 6901) of the faulty member; empty: the whole body' }),
  message: Type.String(),
  roundId: Type.Optional(Type.String({ description: `${ERRORS.roundOpen.code}: the round that is open` })),
  lastActionSeq: Type.Optional(
    Type.Integer({
      description: `${ERRORS.roundOpen.code}: the number of its newest action, 0 before the first`,
    }),
  ),
});

export const ErrorResponse = Type.Object({
  status: Type.Literal('error'),
  errorCode: Type.String({ pattern: '^KS-[0-9]{4}$' }),
  message: Type.String(),
  docUrl: Type.Optional(
    Type.String({ description: 'Where it is explained, relative to the address of the service' }),
  ),
  retryAfter: Type.Optional(Type.Integer({ description: 'Seconds; on 429' })),
  details: Type.Optional(Type.Array(ErrorDetail)),
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
