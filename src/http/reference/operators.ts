/** Descriptions and examples: operators and sessions of the console. */
import { ERRORS } from '../../domain/errors.js';
import type { References } from './operationReference.js';

const OPERATOR = {
  name: 'jane.doe',
  role: 'operator',
  status: 'active',
  createdAt: '2026-11-22T07:30:12.408Z',
  issuedAt: '2026-11-22T07:30:12.408Z',
  expiresAt: '2027-12-31T00:00:00.000Z',
  revokedAt: null,
};

// Neither a key nor a token of anyone.
const API_KEY = `kso_${'A'.repeat(43)}`;
const SESSION = {
  operator: 'jane.doe',
  role: 'operator',
  csrfToken: 'A'.repeat(43),
  expiresAt: '2026-11-22T15:30:12.408Z',
};

export const OPERATOR_REFERENCES: References = {
  createOperator: {
    description: `An admin gives a person or a program a key of its own. The audit log names whoever made a change. A request beyond the role is ${ERRORS.notPermitted.code}. The answer shows the key, of which the service keeps only the SHA-256.`,
    request: { name: 'jane.doe', role: 'operator', expiresAt: '2027-12-31T00:00:00Z' },
    response: { ...OPERATOR, apiKey: API_KEY },
  },
  listOperators: {
    description:
      'Lists all operators, the revoked ones too; not the first one, whose key the environment gives.',
    response: { operators: [OPERATOR] },
  },
  rotateOperatorKey: {
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
  revokeOperator: {
    description: `The key is refused with ${ERRORS.revokedApiKey.code} on every front end within a second, for ever, and its sessions are over.`,
  },
  signIn: {
    description:
      'Takes the key of an operator and answers with a cookie that scripts of the page cannot read, for the console. Every change that comes with the cookie carries `csrfToken` in the header `X-CSRF-Token`. A key has at most 10 sessions at once: one more ends the oldest.',
    response: SESSION,
  },
  getSession: {
    description: 'Tells the name and the role behind the key or the session of the request.',
    response: SESSION,
  },
  signOut: { description: 'Ends the session of the request and removes its cookie.' },
};
