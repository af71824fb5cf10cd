/**
 * The permission of a partner's request. A request waits for its body, its rate limit window, Redis and the
 * ledger, and its key may be revoked meanwhile. Whoever acts after such a wait asks for `refusal` first.
 */
import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { ApiKey, Partner } from '../../domain/game.js';
import type { Exchange } from './exchange.js';

/** A partner's key, as one version of the catalog has it. */
export interface FoundKey {
  readonly key: ApiKey;
  readonly partner: Partner;
}

/** Where an admission is judged again (access.ts). */
export interface Judge {
  readonly version: number;
  find(keyHash: string): FoundKey | undefined;
  refuse(exchange: Exchange, entry: ErrorEntry): void;
}

/** Returns the error with which a key is refused now; undefined if the key is accepted. */
export function refusalOf({ key, partner }: FoundKey): ErrorEntry | undefined {
  if (key.isRevoked) return ERRORS.revokedApiKey;
  if (hasExpired(key)) return ERRORS.expiredApiKey;
  return partner.isActive ? undefined : ERRORS.partnerDeactivated;
}

const hasExpired = ({ expiresAtMs }: ApiKey): boolean => expiresAtMs !== null && expiresAtMs <= Date.now();

export class Admission {
  readonly #judge: Judge;
  readonly #keyHash: string;
  #found: FoundKey;
  #version: number;
  #refusal: ErrorEntry | undefined;

  constructor(judge: Judge, keyHash: string, found: FoundKey) {
    this.#judge = judge;
    this.#keyHash = keyHash;
    this.#found = found;
    this.#version = judge.version;
  }

  /** The partner, as the catalog has it now. */
  get partner(): Partner {
    this.#renew();
    return this.#found.partner;
  }

  /** The error with which the request must be refused now; undefined if its key is still accepted. */
  get refusal(): ErrorEntry | undefined {
    this.#renew();
    if (this.#refusal === undefined && hasExpired(this.#found.key)) this.#refusal = ERRORS.expiredApiKey;
    return this.#refusal;
  }

  #renew(): void {
    const { version } = this.#judge;
    if (version === this.#version) return;
    this.#version = version;
    // A key stays in the catalog after its revocation.
    this.#found = this.#judge.find(this.#keyHash) ?? this.#found;
    this.#refusal = refusalOf(this.#found);
  }

  /**
   * Answers the request with the error of its key, if the key is no longer accepted.
   * @returns true if the request was answered
   */
  refuses(exchange: Exchange): boolean {
    const { refusal } = this;
    if (refusal === undefined) return false;
    this.#judge.refuse(exchange, refusal);
    return true;
  }
}
