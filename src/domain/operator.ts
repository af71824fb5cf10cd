/**
 * Operators: the people and programs that run the service, each with a name and a role (docs/contract.md
 * §15.7).
 */

import { Type } from '#typebox';
import { KeyStatus } from './apiKey.js';
import { choice, KEY_PREFIX, nullable, timestamp } from './schema.js';

/** Roles, from the one with all permissions to the one that may only read. Each includes the next. */
export const ROLES = ['admin', 'operator', 'support', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

/** An operator's key as the front ends hold it in memory. */
export interface OperatorKey {
  /** Name of the operator. It is never reused, because the audit log names operators by it. */
  readonly name: string;
  readonly role: Role;
  /** Expiry of the key in milliseconds since the epoch. Null if it never expires. */
  readonly expiresAtMs: number | null;
  readonly isRevoked: boolean;
}

/** Name of the operator whose key comes from the environment or the data folder. */
export const FIRST_OPERATOR = 'operator';

/** Reserved names: the first operator's, and those that the audit log uses for system events. */
const RESERVED_NAMES: readonly string[] = [
  FIRST_OPERATOR,
  'worker',
  'front-end',
  'command',
  'cli',
  'first start',
];

export const isReservedName = (name: string): boolean => RESERVED_NAMES.includes(name);

/**
 * Returns whether a role has the permissions of a role that a route requires. A role that a newer version
 * wrote has no permissions.
 */
export const isPermitted = (role: Role, needed: Role): boolean =>
  ROLES.includes(role) && ROLES.indexOf(role) <= ROLES.indexOf(needed);

export const OperatorRole = choice(
  ROLES,
  'auditor: may read everything; support: may also block and unblock players; operator: may also change everything except operators; admin: may also change operators',
);

export const Operator = Type.Object({
  name: Type.String(),
  role: OperatorRole,
  prefix: KEY_PREFIX,
  status: KeyStatus,
  createdAt: timestamp(),
  issuedAt: Type.String({ format: 'date-time', description: 'Time at which the current key was issued' }),
  expiresAt: nullable(timestamp()),
  revokedAt: nullable(timestamp()),
});
