/**
 * Authenticates requests and limits their rate: API keys (docs/contract.md §3), rate limit windows (§4),
 * failed authentications (§4).
 */
import { hash } from 'node:crypto';
import { ERRORS, type ErrorEntry, type Fault } from '../../domain/errors.js';
import type { Role } from '../../domain/operator.js';
import { clientNetwork, type TrustedProxies } from '../../domain/trustedProxies.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import { Admission, type FoundKey, type Judge, refusalOf } from './admission.js';
import { AuthFailures, type CountFailure } from './authFailures.js';
import type { Exchange } from './exchange.js';
import { type Caller, OperatorAccess, type OperatorServices } from './operatorAccess.js';
import type { Replies } from './reply.js';

export interface AccessServices extends OperatorServices {
  readonly catalog: Pick<Catalog, 'version' | 'keyByHash' | 'partner' | 'operatorByHash' | 'refresh'>;
  readonly countFailure: CountFailure;
  /**
   * Called when an unauthenticated client exceeds the limit of failed authentications at the operator API.
   *
   * @param client the client, or the network whose shared counter includes the client
   */
  onWindowOver(client: string): void;
  onWrongKey(client: string, entry: ErrorEntry): void;
  /**
   * Called when authentication fails because of a defect or an unavailable store.
   *
   * @param entry error of the error catalog that the client receives
   */
  onError(exchange: Exchange, error: unknown, entry: ErrorEntry): void;
}

const HASHES_MAX = 4096;

/** Details of the error for a client that sends its key as a bearer token. */
const WRONG_HEADER: readonly Fault[] = [
  {
    path: '',
    message: 'The key was sent in the wrong header, Authorization. Send it in X-API-Key, without «Bearer»',
  },
];
/** Details of the error for a client that sends X-API-Key twice. A valid key contains no comma. */
const SENT_TWICE: readonly Fault[] = [{ path: '', message: 'The header X-API-Key must be sent only once' }];

export class Access {
  readonly #proxies: TrustedProxies;
  readonly #failures: AuthFailures;
  readonly #operators: OperatorAccess;
  readonly #hashes = new Map<string, string>();
  readonly #judge: Judge;

  constructor(
    private readonly services: AccessServices,
    private readonly replies: Replies,
    options: { failureLimit: number; operatorKey: string; proxies: TrustedProxies },
  ) {
    this.#proxies = options.proxies;
    this.#failures = new AuthFailures(services.countFailure, options.failureLimit);
    this.#judge = {
      get version() {
        return services.catalog.version;
      },
      find: (keyHash) => this.#find(keyHash),
      refuse: (exchange, entry) => this.#refuse(exchange, entry, this.clientOf(exchange)),
    };
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
   * Finds the partner of a request. For a known key, `onPartner` is called synchronously. For an unknown key,
   * it is called after a refresh of the catalog, because the key may have just been issued. If no partner is
   * found, this method sends the error.
   *
   * @param onPartner receives the admission, which it asks again after each wait
   */
  partner(exchange: Exchange, onPartner: (admission: Admission) => void): void {
    const { apiKey } = exchange.head;
    if (apiKey === '') {
      this.#refuse(exchange, ERRORS.missingApiKey, this.clientOf(exchange));
      return;
    }
    const keyHash = this.#hashOf(apiKey);
    const found = this.#find(keyHash);
    if (found !== undefined && refusalOf(found) === undefined) {
      this.#admit(exchange, keyHash, found, onPartner);
      return;
    }
    const address = this.clientOf(exchange);
    // The key is unknown, or the catalog that refuses it may be stale. The catalog is refreshed once before
    // the request is refused.
    this.services.catalog
      .refresh()
      .then(
        () => {
          const again = this.#find(keyHash);
          exchange.partnerId = again?.partner.partnerId;
          const refused = again === undefined ? ERRORS.invalidApiKey : refusalOf(again);
          if (refused !== undefined) this.#refuse(exchange, refused, address);
          else this.#admit(exchange, keyHash, again!, onPartner);
        },
        (error: unknown) => this.#uncheckable(exchange, error),
      )
      .catch((error: unknown) => this.#defect(exchange, error));
  }

  #admit(
    exchange: Exchange,
    keyHash: string,
    found: FoundKey,
    onPartner: (admission: Admission) => void,
  ): void {
    exchange.partnerId = found.partner.partnerId;
    exchange.version?.noteUse(found.key.keyId);
    onPartner(new Admission(this.#judge, keyHash, found));
  }

  /**
   * Returns the key of the window for failed authentications: the client's IPv4 address or IPv6 /64 network.
   * Must be called before the first await.
   */
  clientOf(exchange: Exchange): string {
    return clientNetwork(this.#proxies.clientOf(exchange.origin()));
  }

  /**
   * Admits a request of an operator whose role permits the operation. Answers all other requests with an
   * error.
   */
  operator(exchange: Exchange, needed: Role, onCaller: (caller: Caller) => void): void {
    this.#operators.admit(exchange, needed, onCaller);
  }

  /** Returns the SHA-256 of a key, from a cache of recently used keys. */
  #hashOf(apiKey: string): string {
    let keyHash = this.#hashes.get(apiKey);
    if (keyHash === undefined) {
      if (this.#hashes.size >= HASHES_MAX) this.#hashes.clear();
      keyHash = hash('sha256', apiKey, 'binary');
      this.#hashes.set(apiKey, keyHash);
    }
    return keyHash;
  }

  #find(keyHash: string): FoundKey | undefined {
    const key = this.services.catalog.keyByHash(keyHash);
    const partner = key === undefined ? undefined : this.services.catalog.partner(key.partnerId);
    return key === undefined || partner === undefined ? undefined : { key, partner };
  }

  /**
   * Answers a failed authentication, and reports the client's rate limit window in the answer. Beyond the
   * limit, the answer is KS-4293.
   */
  #refuse(
    exchange: Exchange,
    entry: ErrorEntry,
    client: string,
    { isOperators = false, message }: { isOperators?: boolean; message?: string | undefined } = {},
  ): void {
    const options = {
      ...(message === undefined ? {} : { message }),
      ...(entry === ERRORS.missingApiKey && exchange.head.hasBearer ? { details: WRONG_HEADER } : {}),
      ...(exchange.head.apiKey.includes(', ') ? { details: SENT_TWICE } : {}),
    };
    exchange.refuseBody();
    // Only the use of a wrong key is reported to the operator. A client without a key, or with an expired
    // session, tried no wrong key.
    const isOfKey = entry !== ERRORS.missingApiKey && message === undefined;
    this.#failures.count(client, isOperators).then(
      ({ client: counted, window, isOver }) => {
        if (isOver && isOperators) this.services.onWindowOver(counted);
        else if (isOperators && isOfKey) this.services.onWrongKey(client, entry);
        if (isOver) this.replies.error(exchange, ERRORS.tooManyFailedLogins, window);
        else this.replies.error(exchange, entry, window, options);
      },
      (error: unknown) => {
        // The store that counts failed authentications is unavailable. The request is still refused, because
        // the key is wrong.
        this.services.onError(exchange, error, entry);
        this.replies.error(exchange, entry, undefined, options);
      },
    );
  }

  /** Handles an exception in the code that runs after authentication, which is a defect of the service. */
  #defect(exchange: Exchange, error: unknown): void {
    this.services.onError(exchange, error, ERRORS.internal);
    this.replies.error(exchange, ERRORS.internal);
  }

  #uncheckable(exchange: Exchange, error: unknown): void {
    this.services.onError(exchange, error, ERRORS.authenticationFailed);
    this.replies.error(exchange, ERRORS.authenticationFailed);
  }
}
