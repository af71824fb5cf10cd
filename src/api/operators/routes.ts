/** Handlers of operators, their keys and the sessions of the console (docs/contract.md §15.7). */

import { newKey, storedKey } from '../../domain/apiKey.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { isReservedName } from '../../domain/operator.js';
import type { OperatorRow } from '../../engine/catalog/operators.store.js';
import { OPERATOR_BASE } from '../contract/apis.js';
import { expiryOf } from '../partners/routes.js';
import { type Caller, csrfTokenOf, SESSION_COOKIE, textSha256 } from '../server/operatorAccess.js';
import { learn, type Route, route, WithHeaders } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

function shownOperator(row: OperatorRow) {
  const isExpired = row.expiresAt !== null && row.expiresAt.getTime() <= Date.now();
  const isRevoked = row.revokedAt !== null;
  return {
    ...row,
    status: isRevoked ? 'revoked' : isExpired ? 'expired' : 'active',
  };
}

const nameFault = (entry: (typeof ERRORS)['validationFailed' | 'capReached'], message: string): ApiError =>
  new ApiError(entry, { details: [{ path: '/name', message }] });

const TAKEN = 'is already taken. Choose another name, because names are never reused.';

const createOperator = ({ store, catalog }: Services): Route =>
  route(contract.createOperator, async ({ actor, body }) => {
    const { name, role, expiresAt } = body;
    const expiry = expiryOf(expiresAt);
    if (isReservedName(name)) throw nameFault(ERRORS.validationFailed, TAKEN);
    const apiKey = newKey('kso_');
    const wanted = { name, role, ...storedKey(apiKey), expiresAt: expiry } as const;
    const row = await store.operators.create(actor, wanted);
    if (row === 'taken') throw nameFault(ERRORS.validationFailed, TAKEN);
    if (row === 'tooMany')
      throw nameFault(ERRORS.capReached, 'would exceed the maximum number of operator names');
    await learn(catalog);
    return { ...shownOperator(row), apiKey };
  });

const listOperators = ({ store }: Services): Route =>
  route(contract.listOperators, async () => {
    return { operators: (await store.operators.list()).map(shownOperator) };
  });

function nameOf({ name }: { readonly name: string }): string {
  // Postgres rejects NUL characters in text.
  if (name.includes('\0')) throw new ApiError(ERRORS.keyNotFound);
  return name;
}

const rotateKey = ({ store, catalog }: Services): Route =>
  route(contract.rotateOperatorKey, async ({ actor, params, body }) => {
    const expiry = expiryOf(body.expiresAt);
    const apiKey = newKey('kso_');
    const key = { ...storedKey(apiKey), expiresAt: expiry };
    const row = await store.operators.rotateKey(actor, nameOf(params), key, body.reason);
    if (row === undefined) throw new ApiError(ERRORS.keyNotFound);
    await learn(catalog);
    return { ...shownOperator(row), apiKey };
  });

const revokeOperator = ({ store, catalog }: Services): Route =>
  route(contract.revokeOperator, async ({ actor, params, query }) => {
    const result = await store.operators.revoke(actor, nameOf(params), query.reason);
    if (result === 'missing') throw new ApiError(ERRORS.keyNotFound);
    await learn(catalog);
    return undefined;
  });

/**
 * Scripts cannot read it (HttpOnly), other sites cannot send it (SameSite=Strict), and browsers send it to
 * the operator API only (Path).
 */
const cookie = (token: string, maxAgeSeconds: number, isSecure: boolean): string =>
  `Set-Cookie: ${SESSION_COOKIE}=${token}; Path=${OPERATOR_BASE}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${
    isSecure ? '; Secure' : ''
  }`;

const shownSession = (
  { name, role }: Caller,
  session: { csrfToken: string; expiresAt: Date } | undefined,
) => ({
  operator: name,
  role,
  csrfToken: session?.csrfToken ?? null,
  expiresAt: session?.expiresAt ?? null,
});

const sessionRoutes = ({ store, sessions }: Services): Route[] => [
  route(contract.signIn, async ({ operator, isSecure }) => {
    // A session must not start another session, because a chain of sessions would never expire.
    if (operator.session !== undefined)
      throw new ApiError(ERRORS.missingApiKey, {
        details: [
          {
            path: '/X-API-Key',
            message: 'must be the key of an operator, because a session cannot begin another session',
          },
        ],
      });
    const token = sessions.tokens.make();
    const { keyHash } = operator;
    const begun = { sessionHash: textSha256(token), keyHash, minutes: sessions.minutes };
    const expiresAt = await store.operators.beginSession(operator.name, begun);
    const session = shownSession(operator, { csrfToken: csrfTokenOf(token), expiresAt });
    return new WithHeaders(session, cookie(token, sessions.minutes * 60, isSecure));
  }),
  route(contract.getSession, ({ operator }) => shownSession(operator, operator.session)),
  route(contract.signOut, async ({ operator, isSecure }) => {
    if (operator.session !== undefined)
      await store.operators.endSession(operator.name, operator.session.hash);
    return new WithHeaders(undefined, cookie('', 0, isSecure));
  }),
];

export const operatorRoutes = (services: Services): Route[] => [
  createOperator(services),
  listOperators(services),
  rotateKey(services),
  revokeOperator(services),
  ...sessionRoutes(services),
];
