/** Schemas and operations of operators, their keys and the sessions of the console. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { Operator, OperatorRole } from '../../domain/operator.js';
import { AUDIT_REASON, nullable, OPERATOR_NAME_PATTERN, PATH, timestamp } from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';
import { ReasonQuery } from '../partners/contract.js';

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

// Example text only: nobody has this key or token.
const API_KEY = `kso_${'A'.repeat(43)}`;

const SESSION = {
  operator: 'jane.doe',
  role: 'operator',
  csrfToken: 'A'.repeat(43),
  expiresAt: '2026-11-22T15:30:12.408Z',
};

const ofSession = {
  path: '/session',
  tag: 'Operators',
  scope: 'operator',
  // Auditors can sign in and out as well.
  role: 'auditor',
  errors: [],
  failure: ERRORS.internal,
} as const;

export const createOperator = endpoint(
  {
    method: 'post',
    path: '/operators',
    operationId: 'createOperator',
    tag: 'Operators',
    summary: 'Create an operator with a key; it is shown this once',
    scope: 'operator',
    role: 'admin',
    body: OperatorBody,
    status: 201,
    response: IssuedOperator,
    errors: [ERRORS.capReached],
    failure: ERRORS.keyIssueFailed,
  },
  {
    description: `An admin gives a person or a program a key of its own. The audit log names whoever made a change. A request beyond the role is ${ERRORS.notPermitted.code}. The answer shows the key, of which the service keeps only the SHA-256 and \`prefix\`.`,
    request: { name: 'jane.doe', role: 'operator', expiresAt: '2027-12-31T00:00:00Z' },
    response: { ...OPERATOR, apiKey: API_KEY },
  },
);

export const listOperators = endpoint(
  {
    method: 'get',
    path: '/operators',
    operationId: 'listOperators',
    tag: 'Operators',
    summary: 'List the operators, without their keys',
    scope: 'operator',
    status: 200,
    response: OperatorList,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'Lists all operators, the revoked ones too; not the first one, whose key the environment gives.',
    response: { operators: [OPERATOR] },
  },
);

export const rotateOperatorKey = endpoint(
  {
    method: 'post',
    path: '/operators/{name}/rotate',
    params: { name: PATH.operatorName },
    operationId: 'rotateOperatorKey',
    tag: 'Operators',
    summary: "Replace an operator's key; the new one is shown this once",
    scope: 'operator',
    role: 'admin',
    body: OperatorKeyBody,
    status: 200,
    response: IssuedOperator,
    errors: [ERRORS.keyNotFound],
    failure: ERRORS.keyIssueFailed,
  },
  {
    description:
      'The key before is refused on every front end within a second, and its sessions are over. The name and the role stay.',
    request: { expiresAt: '2028-12-31T00:00:00Z' },
    response: {
      ...OPERATOR,
      issuedAt: '2026-11-22T07:31:40.011Z',
      expiresAt: '2028-12-31T00:00:00.000Z',
      apiKey: API_KEY,
    },
  },
);

export const revokeOperator = endpoint(
  {
    method: 'delete',
    path: '/operators/{name}',
    params: { name: PATH.operatorName },
    query: ReasonQuery,
    operationId: 'revokeOperator',
    tag: 'Operators',
    summary: "Revoke an operator's key and end its sessions",
    scope: 'operator',
    role: 'admin',
    status: 204,
    errors: [ERRORS.keyNotFound],
    failure: ERRORS.internal,
  },
  {
    description: `The key is refused with ${ERRORS.revokedApiKey.code} on every front end within a second, for ever, and its sessions are over.`,
  },
);

export const signIn = endpoint(
  {
    ...ofSession,
    method: 'post',
    operationId: 'signIn',
    summary: 'Begin a session of the console',
    status: 201,
    response: Session,
  },
  {
    description: `Takes the key of an operator and answers with a cookie that scripts of the page cannot read, for the console. Every change that comes with the cookie carries \`csrfToken\` in the header \`X-CSRF-Token\`. A session ends at its \`expiresAt\`, which is not behind the key's, and begins no other: with the cookie alone the answer is ${ERRORS.missingApiKey.code}. A key has at most 10 sessions at once: one more ends the oldest.`,
    response: SESSION,
  },
);

export const getSession = endpoint(
  {
    ...ofSession,
    method: 'get',
    operationId: 'getSession',
    summary: 'Who asks, with which role',
    status: 200,
    response: Session,
  },
  {
    description: 'Tells the name and the role behind the key or the session of the request.',
    response: SESSION,
  },
);

export const signOut = endpoint(
  {
    ...ofSession,
    method: 'delete',
    operationId: 'signOut',
    summary: 'End the session of the console',
    status: 204,
  },
  {
    description: 'Ends the session of the request and removes its cookie.',
  },
);
