/** Schemas and operations of operators, their keys and the sessions of the console. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { Operator, OperatorRole } from '../../domain/operator.js';
import { AUDIT_REASON, nullable, OPERATOR_NAME_PATTERN, timestamp } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';
import { ReasonQuery } from '../partners/contract.js';

const { operator } = endpointsOf('Operators');

const EXPIRES_AT = nullable(
  Type.String({
    description:
      'Time at which the key expires, as an RFC 3339 time in the future; null if the key never expires',
  }),
);

export const OperatorBody = Type.Object({
  name: Type.String({
    pattern: OPERATOR_NAME_PATTERN,
    description: 'Name of the operator, as in the audit log. It is never reused for another operator.',
  }),
  role: OperatorRole,
  expiresAt: Type.Optional(EXPIRES_AT),
});

export const OperatorKeyBody = Type.Object({
  expiresAt: Type.Optional(EXPIRES_AT),
  reason: Type.Optional(AUDIT_REASON),
});

export const IssuedOperator = Type.Object({
  ...Operator.properties,
  apiKey: Type.String({ description: 'API key, shown only in this response' }),
});

export const OperatorList = Type.Object({ operators: Type.Array(Operator) });

export const Session = Type.Object({
  operator: Type.String({ description: 'Name of the operator who sends the request' }),
  role: OperatorRole,
  csrfToken: nullable(
    Type.String({
      description:
        'Token that every change must send as X-CSRF-Token; null if the request was authenticated with a key',
    }),
  ),
  expiresAt: nullable(timestamp()),
});

export type OperatorBody = Static<typeof OperatorBody>;

export type OperatorKeyBody = Static<typeof OperatorKeyBody>;

const OPERATOR = {
  name: 'jane.doe',
  role: 'operator',
  prefix: 'kso_AAAAAA',
  status: 'active',
  createdAt: '2026-11-22T07:30:12.408Z',
  issuedAt: '2026-11-22T07:30:12.408Z',
  expiresAt: '2027-12-31T00:00:00.000Z',
  revokedAt: null,
};

// Example text only: no operator has this key or token.
const API_KEY = `kso_${'A'.repeat(43)}`;

const SESSION = {
  operator: 'jane.doe',
  role: 'operator',
  csrfToken: 'A'.repeat(43),
  expiresAt: '2026-11-22T15:30:12.408Z',
};

export const createOperator = operator.post('createOperator', '/operators', {
  summary: 'Create an operator and issue a key',
  description: `An admin can issue a separate key to each person or program, so that the audit log names who made each change. Requests beyond the role are refused with ${ERRORS.notPermitted.code}. The key is shown only in this response, because the service stores only its SHA-256 and \`prefix\`.`,
  role: 'admin',
  body: OperatorBody,
  status: 201,
  response: IssuedOperator,
  errors: [ERRORS.capReached],
  failure: ERRORS.keyIssueFailed,
  bodyExample: { name: 'jane.doe', role: 'operator', expiresAt: '2027-12-31T00:00:00Z' },
  example: { ...OPERATOR, apiKey: API_KEY },
});

export const listOperators = operator.get('listOperators', '/operators', {
  summary: 'List the operators, without their keys',
  description:
    'Lists all operators, including revoked ones. The first operator is not listed, because its key is set in the environment.',
  response: OperatorList,
  example: { operators: [OPERATOR] },
});

export const rotateOperatorKey = operator.post('rotateOperatorKey', '/operators/{name}/rotate', {
  summary: "Replace an operator's key",
  description:
    'Returns the new key, which is shown only once. Every front end refuses the previous key within a second, and its sessions end. Name and role do not change.',
  role: 'admin',
  body: OperatorKeyBody,
  response: IssuedOperator,
  failure: ERRORS.keyIssueFailed,
  bodyExample: { expiresAt: '2028-12-31T00:00:00Z' },
  example: {
    ...OPERATOR,
    issuedAt: '2026-11-22T07:31:40.011Z',
    expiresAt: '2028-12-31T00:00:00.000Z',
    apiKey: API_KEY,
  },
});

export const revokeOperator = operator.delete('revokeOperator', '/operators/{name}', {
  summary: "Revoke an operator's key and end its sessions",
  description: `Every front end refuses the key permanently with ${ERRORS.revokedApiKey.code} within a second, and its sessions end.`,
  role: 'admin',
  query: ReasonQuery,
});

export const signIn = operator.post('signIn', '/session', {
  summary: 'Begin a console session',
  description: `Accepts an operator's key, and returns a cookie for the console that scripts of the page cannot read. Every change that the cookie authenticates must send \`csrfToken\` in the header \`X-CSRF-Token\`. A session ends at \`expiresAt\`, at the latest when its key expires. A session cannot begin another session: with the cookie alone the response is ${ERRORS.missingApiKey.code}. A key has at most 10 sessions; a further session ends the oldest one.`,
  // The role `auditor` suffices to sign in and out.
  role: 'auditor',
  status: 201,
  response: Session,
  example: SESSION,
});

export const getSession = operator.get('getSession', '/session', {
  summary: 'Get the name and role of the caller',
  description: 'Returns the name and role of the key or session that authenticates the request.',
  role: 'auditor',
  response: Session,
  example: SESSION,
});

export const signOut = operator.delete('signOut', '/session', {
  summary: 'End the console session',
  description: 'Ends the session of the request and removes its cookie.',
  role: 'auditor',
});
