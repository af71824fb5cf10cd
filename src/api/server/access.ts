/** Who may ask, and how often: API keys (docs/contract.md §3), windows (§4), failed authentications (§4). */
import { hash } from 'node:crypto';
import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { ApiKey, Partner } from '../../domain/game.js';
import type { Role } from '../../domain/operator.js';
import { clientNetwork, type TrustedProxies } from '../../domain/trustedProxies.js';
import { AuthFailures, type CountFailure } from './authFailures.js';
import type { Exchange } from './exchange.js';
import { type Caller, OperatorAccess, type OperatorServices } from './operatorAccess.js';
import type { Replies, Window } from './reply.js';

/** What authentication asks of the rest of the program. */
export interface AccessServices extends OperatorServices {
  keyByHash(hash: string): ApiKey | undefined;
  partner(partnerId: number): Partner | undefined;
  readonly countFailure: CountFailure;
  /** Strangers fail at the operators' door more often than they may. @param client or the network that it is counted with */
  onWindowOver(client: string): void;
  /** A key that a stranger sent to the operators' door is none, or none any more. */
  onWrongKey(client: string, entry: ErrorEntry): void;
  /** @param entry what is answered */
  onError(exchange: Exchange, error: unknown, entry: ErrorEntry): void;
}

const HASHES_MAX = 4096;

/** A key that names a partner, and what stands against using it. */
type Found = { keyId: number; partner: Partner; refused: ErrorEntry | undefined };

export class Access {
  readonly #services: AccessServices;
  readonly #replies: Replies;
  readonly #failureLimit: number;
  readonly #proxies: TrustedProxies;
  readonly #failures: AuthFailures;
  readonly #operators: OperatorAccess;
  readonly #hashes = new Map<string, string>();

  constructor(
    services: AccessServices,
    replies: Replies,
    options: { failureLimit: number; operatorKey: string; proxies: TrustedProxies },
  ) {
    this.#services = services;
    this.#replies = replies;
    this.#failureLimit = options.failureLimit;
    this.#proxies = options.proxies;
    this.#failures = new AuthFailures(services.countFailure, options.failureLimit);
    const refusals = {
      wrong: (exchange: Exchange, entry: ErrorEntry, client: string, message?: string): void =>
        this.#refuse(exchange, entry, client, { isOperators: true, message }),
      defect: (exchange: Exchange, error: unknown): void => this.#defect(exchange, error),
      uncheckable: (exchange: Exchange, error: unknown): void => this.#uncheckable(exchange, error),
      clientOf: (exchange: Exchange): string => this.clientOf(exchange),
    };
    this.#operators = new OperatorAccess(services, replies, refusals, options.operatorKey);
  }

  /**
   * Finds the partner of a request. `onPartner` is called at once for a key that is known; else after a look for keys
   * that were issued a moment ago. Where there is none, the request is answered here.
   */
  partner(exchange: Exchange, onPartner: (partner: Partner) => void): void {
    const { apiKey } = exchange.head;
    if (apiKey === '') {
      this.#refuse(exchange, ERRORS.missingApiKey, this.clientOf(exchange));
      return;
    }
    const keyHash = this.#hashOf(apiKey);
    const found = this.#find(keyHash);
    if (found !== undefined && found.refused === undefined) {
      exchange.partnerId = found.partner.partnerId;
      exchange.version?.noteUse(found.keyId);
      onPartner(found.partner);
      return;
    }
    const address = this.clientOf(exchange);
    // Not known, or refused by what may be old news: look once more before saying no.
    this.#services
      .refresh()
      .then(
        () => {
          const again = this.#find(keyHash);
          exchange.partnerId = again?.partner.partnerId;
          if (again === undefined) this.#refuse(exchange, ERRORS.invalidApiKey, address);
          else if (again.refused !== undefined) this.#refuse(exchange, again.refused, address);
          else {
            exchange.version?.noteUse(again.keyId);
            onPartner(again.partner);
          }
        },
        (error: unknown) => this.#uncheckable(exchange, error),
      )
      .catch((error: unknown) => this.#defect(exchange, error));
  }

  /** What the windows of strangers count by: the client's IPv4 address or IPv6 /64. To be asked before the first await. */
  clientOf(exchange: Exchange): string {
    return clientNetwork(this.#proxies.clientOf(exchange.origin()));
  }

  /** Lets a request of an operator's through whose role permits what it asks for; answers any other. */
  operator(exchange: Exchange, needed: Role, onCaller: (caller: Caller) => void): void {
    this.#operators.admit(exchange, needed, onCaller);
  }

  /** The SHA-256 of a key; of those that came lately it is kept. */
  #hashOf(apiKey: string): string {
    let keyHash = this.#hashes.get(apiKey);
    if (keyHash === undefined) {
      if (this.#hashes.size >= HASHES_MAX) this.#hashes.clear();
      keyHash = hash('sha256', apiKey, 'binary');
      this.#hashes.set(apiKey, keyHash);
    }
    return keyHash;
  }

  #find(keyHash: string): Found | undefined {
    const key = this.#services.keyByHash(keyHash);
    const partner = key === undefined ? undefined : this.#services.partner(key.partnerId);
    if (key === undefined || partner === undefined) return undefined;
    let refused: ErrorEntry | undefined;
    if (key.isRevoked) refused = ERRORS.revokedApiKey;
    else if (key.expiresAtMs !== null && key.expiresAtMs <= Date.now()) refused = ERRORS.expiredApiKey;
    else if (!partner.isActive) refused = ERRORS.partnerDeactivated;
    return { keyId: key.keyId, partner, refused };
  }

  /** Answers a failed authentication with the window of its client; past the limit with KS-4293. */
  #refuse(
    exchange: Exchange,
    entry: ErrorEntry,
    client: string,
    { isOperators = false, message }: { isOperators?: boolean; message?: string | undefined } = {},
  ): void {
    const options = message === undefined ? {} : { message };
    exchange.refuseBody();
    // Who sent none, or a session that is over, tried no key.
    const isOfKey = entry !== ERRORS.missingApiKey && message === undefined;
    this.#failures.count(client, isOperators).then(
      ({ client: counted, window, isOver }) => {
        if (isOver && isOperators) this.#services.onWindowOver(counted);
        else if (isOperators && isOfKey) this.#services.onWrongKey(client, entry);
        if (isOver) this.#replies.error(exchange, ERRORS.tooManyFailedLogins, window);
        else this.#replies.error(exchange, entry, window, options);
      },
      (error: unknown) => {
        // The store that counts is away; the key is wrong all the same.
        this.#services.onError(exchange, error, entry);
        this.#replies.error(exchange, entry, this.#ownWindow(), options);
      },
    );
  }

  /** A defect of ours in what came after. */
  #defect(exchange: Exchange, error: unknown): void {
    this.#services.onError(exchange, error, ERRORS.internal);
    this.#replies.error(exchange, ERRORS.internal, this.#ownWindow());
  }

  #uncheckable(exchange: Exchange, error: unknown): void {
    this.#services.onError(exchange, error, ERRORS.authenticationFailed);
    this.#replies.error(exchange, ERRORS.authenticationFailed, this.#ownWindow());
  }

  /** Where the store can't tell: nothing is promised of the limit, by this process's clock. */
  #ownWindow(): Window {
    return { policy: 'auth', limit: this.#failureLimit, remaining: 0, nowMs: Date.now() };
  }
}
