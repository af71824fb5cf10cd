/** Operators: whoever runs the service, each under a name and with a role (docs/contract.md §15.7). */

import { Type } from '#typebox';
import { KeyStatus } from './apiKey.js';
import { choice, KEY_PREFIX, nullable, timestamp } from './schema.js';

/** From the one that may do everything to the one that may only read. */
export const ROLES = ['admin', 'operator', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

/** An operator's key as the front ends hold it in memory. */
export interface OperatorKey {
  /** Unique for ever: the audit log names the operator by it. */
  readonly name: string;
  readonly role: Role;
  /** Milliseconds since the epoch; null: never. */
  readonly expiresAtMs: number | null;
  readonly isRevoked: boolean;
}

/** The holder of the key that the environment or the data folder gives. */
export const FIRST_OPERATOR = 'operator';

/** Names under which the audit log has what no operator did, and the first operator's. */
const RESERVED_NAMES: readonly string[] = [FIRST_OPERATOR, 'worker', 'cli', 'first start'];

export const isReservedName = (name: string): boolean => RESERVED_NAMES.includes(name);

/** Whether a role may do what a route asks for. */
export const isPermitted = (role: Role, needed: Role): boolean =>
  ROLES.indexOf(role) <= ROLES.indexOf(needed);

export const OperatorRole = choice(
  ROLES,
  'auditor: reads; operator: changes everything but operators; admin: operators too',
);

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
