/**
 * Authenticates operators and checks their roles. An operator sends a key in X-API-Key, or the cookie of a
 * console session with the session's CSRF token (docs/contract.md §15.7).
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import { FIRST_OPERATOR, isPermitted, type OperatorKey, type Role } from '../../domain/operator.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { Exchange } from './exchange.js';
import type { Replies } from './reply.js';
import type { SessionTokens } from './sessionTokens.js';

export interface OperatorServices {
  readonly catalog: Pick<Catalog, 'operatorByHash' | 'refresh'>;
  /**
   * Returns true if a key may have been revoked and this process may not have learned of the revocation yet.
   */
  isBehind(): boolean;
  readonly sessionTokens: Pick<SessionTokens, 'isOwn'>;
  /**
   * Called when an operator requests an operation that its role does not permit, or when the session's CSRF
   * token is missing.
   */
  onNotPermitted(operator: string, operation: string): void;
  findSession(sessionHash: Buffer): Promise<{ keyHash: Buffer; expiresAt: Date } | undefined>;
}

export interface Caller {
  readonly name: string;
  readonly role: Role;
  readonly keyHash: Buffer;
  /** The console session, if the request came with the session cookie. */
  readonly session:
    | { readonly hash: Buffer; readonly csrfToken: string; readonly expiresAt: Date }
    | undefined;
}

export interface Refusals {
  wrong(exchange: Exchange, entry: ErrorEntry, client: string, message?: string): void;
  /** Handles an exception in the code that runs after authentication, which is a defect of the service. */
  defect(exchange: Exchange, error: unknown): void;
  uncheckable(exchange: Exchange, error: unknown): void;
  clientOf(exchange: Exchange): string;
}

type Judgement = { readonly key: Pick<OperatorKey, 'name' | 'role'> } | { readonly refused: ErrorEntry };

export const SESSION_COOKIE = 'spindle_session';
/** A session token: 256 bits as base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const SESSION_OVER = 'The session has ended. Sign in again.';

export const textSha256 = (text: string): Buffer => Buffer.from(hash('sha256', text, 'hex'), 'hex');

/**
 * Returns the CSRF token that changes in a session must carry. It is derived from the session token, which
 * scripts cannot read. The session token cannot be derived from it.
 */
export const csrfTokenOf = (token: string): string => textSha256(`csrf:${token}`).toString('base64url');

/** Compares two secrets in constant time. */
const isEqual = (a: string, b: string): boolean => timingSafeEqual(textSha256(a), textSha256(b));

const isChange = ({ head: { method } }: Exchange): boolean => method !== 'get' && method !== 'head';

/** Returns undefined if there is no session cookie or its value is not a possible token. */
function sessionTokenOf(cookie: string): string | undefined {
  const prefix = `${SESSION_COOKIE}=`;
  const found = cookie
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(prefix));
  const token = found?.slice(prefix.length);
  return token !== undefined && TOKEN.test(token) ? token : undefined;
}

export class OperatorAccess {
  readonly #firstKeyHash: Buffer;

  /** @param firstKey key of the first operator, who is an admin */
  constructor(
    private readonly services: OperatorServices,
    private readonly replies: Replies,
    private readonly refusals: Refusals,
    firstKey: string,
  ) {
    this.#firstKeyHash = textSha256(firstKey);
  }

  /**
   * Admits a request of an operator whose role permits the operation. Answers all other requests with an
   * error.
   */
  admit(exchange: Exchange, needed: Role, onCaller: (caller: Caller) => void): void {
    const { apiKey, cookie } = exchange.head;
    const token = apiKey === '' ? sessionTokenOf(cookie) : undefined;
    if (token !== undefined) this.#bySession(exchange, token, needed, onCaller);
    else if (apiKey === '')
      this.refusals.wrong(exchange, ERRORS.missingApiKey, this.refusals.clientOf(exchange));
    else this.#byKey(exchange, textSha256(apiKey), needed, onCaller);
  }

  #byKey(exchange: Exchange, keyHash: Buffer, needed: Role, onCaller: (caller: Caller) => void): void {
    const known = this.#judge(keyHash);
    if ('key' in known) {
      this.#permit(exchange, { ...known.key, keyHash, session: undefined }, needed, onCaller);
      return;
    }
    const client = this.refusals.clientOf(exchange);
    this.#judgeAgain(keyHash)
      .then(
        (again) => {
          if ('key' in again)
            this.#permit(exchange, { ...again.key, keyHash, session: undefined }, needed, onCaller);
          else this.refusals.wrong(exchange, again.refused, client);
        },
        (error: unknown) => this.refusals.uncheckable(exchange, error),
      )
      .catch((error: unknown) => this.refusals.defect(exchange, error));
  }

  #bySession(exchange: Exchange, token: string, needed: Role, onCaller: (caller: Caller) => void): void {
    const client = this.refusals.clientOf(exchange);
    this.#callerOf(token)
      .then(
        (caller) => {
          if (caller?.session === undefined)
            this.refusals.wrong(exchange, ERRORS.invalidApiKey, client, SESSION_OVER);
          else if (isChange(exchange) && !isEqual(exchange.head.csrfToken, caller.session.csrfToken)) {
            const details = [{ path: '/X-CSRF-Token', message: 'must be the csrfToken of the session' }];
            this.#notPermitted(exchange, caller, details);
          } else this.#permit(exchange, caller, needed, onCaller);
        },
        (error: unknown) => this.refusals.uncheckable(exchange, error),
      )
      .catch((error: unknown) => this.refusals.defect(exchange, error));
  }

  /**
   * Returns the operator of a session. Returns undefined if the session has ended or its key is no longer
   * valid.
   *
   * @throws errors of the store
   */
  async #callerOf(token: string): Promise<Caller | undefined> {
    if (!this.services.sessionTokens.isOwn(token)) return undefined;
    const sessionHash = textSha256(token);
    const session = await this.services.findSession(sessionHash);
    if (session === undefined) return undefined;
    const { keyHash, expiresAt } = session;
    const known = this.#judge(keyHash);
    const found = 'key' in known ? known : await this.#judgeAgain(keyHash);
    if (!('key' in found)) return undefined;
    const csrfToken = csrfTokenOf(token);
    return { ...found.key, keyHash, session: { hash: sessionHash, csrfToken, expiresAt } };
  }

  /**
   * Refreshes the catalog and checks the key again, because the key may have just been issued, or the refusal
   * may be based on a stale catalog.
   */
  async #judgeAgain(keyHash: Buffer): Promise<Judgement> {
    await this.services.catalog.refresh();
    return this.#judge(keyHash);
  }

  #permit(exchange: Exchange, caller: Caller, needed: Role, onCaller: (caller: Caller) => void): void {
    const { interfaceVersion } = exchange.head;
    if (interfaceVersion !== '' && !isSupportedInterface(interfaceVersion))
      this.replies.error(exchange, ERRORS.unsupportedInterfaceVersion);
    else if (caller.name !== FIRST_OPERATOR && this.services.isBehind())
      this.replies.error(exchange, ERRORS.unavailable);
    else if (!isPermitted(caller.role, needed)) {
      const message = `This operation needs the role ${needed}, but ${caller.name} has the role ${caller.role}`;
      this.#notPermitted(exchange, caller, [{ path: '', message }]);
    } else onCaller(caller);
  }

  #notPermitted(exchange: Exchange, { name }: Caller, details: { path: string; message: string }[]): void {
    this.services.onNotPermitted(name, exchange.operation);
    this.replies.error(exchange, ERRORS.notPermitted, undefined, { details });
  }

  #judge(keyHash: Buffer): Judgement {
    if (timingSafeEqual(keyHash, this.#firstKeyHash)) return { key: { name: FIRST_OPERATOR, role: 'admin' } };
    const found = this.services.catalog.operatorByHash(keyHash.toString('latin1'));
    if (found === undefined) return { refused: ERRORS.invalidApiKey };
    if (found.isRevoked) return { refused: ERRORS.revokedApiKey };
    if (found.expiresAtMs !== null && found.expiresAtMs <= Date.now())
      return { refused: ERRORS.expiredApiKey };
    return { key: { name: found.name, role: found.role } };
  }
}

/** Returns whether the text is a semantic version (semver.org, 2.0.0) with major version 1. */
function isSupportedInterface(version: string): boolean {
  const number = '(0|[1-9]\\d*)';
  const match = new RegExp(
    `^${number}\\.${number}\\.${number}(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?(\\+[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?$`,
  ).exec(version);
  return match?.[1] === '1';
}
