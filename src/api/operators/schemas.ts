/** Operators, their keys, and sessions of the console. */
import { type Static, Type } from '#typebox';
import { ROLES } from '../../domain/operator.js';
import {
  AUDIT_REASON,
  choice,
  KEY_PREFIX,
  nullable,
  OPERATOR_NAME_PATTERN,
  timestamp,
} from '../../domain/schema.js';
import { KeyStatus } from '../partners/schemas.js';

export const OperatorRole = choice(
  ROLES,
  'auditor: reads; operator: changes everything but operators; admin: operators too',
);

const EXPIRES_AT = nullable(Type.String({ description: 'RFC 3339 time in the future; null: never' }));

export const OperatorBody = Type.Object({
  name: Type.String({
    pattern: OPERATOR_NAME_PATTERN,
    description: 'As the audit log names the operator; never used again for another',
  }),
  role: OperatorRole,
  expiresAt: Type.Optional(EXPIRES_AT),
});

export const OperatorKeyBody = Type.Object({
  expiresAt: Type.Optional(EXPIRES_AT),
  reason: Type.Optional(AUDIT_REASON),
});

export const Operator = Type.Object({
  name: Type.String(),
  role: OperatorRole,
  prefix: KEY_PREFIX,
  status: KeyStatus,
  createdAt: timestamp(),
  issuedAt: Type.String({ format: 'date-time', description: 'When the key was issued that is in force' }),
  expiresAt: nullable(timestamp()),
  revokedAt: nullable(timestamp()),
});

export const IssuedOperator = Type.Object({
  ...Operator.properties,
  apiKey: Type.String({ description: 'Shown this once' }),
});

export const OperatorList = Type.Object({ operators: Type.Array(Operator) });

export const Session = Type.Object({
  operator: Type.String({ description: 'Name of the operator who asks' }),
  role: OperatorRole,
  csrfToken: nullable(
    Type.String({
      description: 'Goes in X-CSRF-Token with every change; null: the request came with a key',
    }),
  ),
  expiresAt: nullable(timestamp()),
});

export type OperatorBody = Static<typeof OperatorBody>;

export type OperatorKeyBody = Static<typeof OperatorKeyBody>;
