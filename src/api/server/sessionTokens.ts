/**
 * Creates the tokens of console sessions. Half of a token is random, and the other half is an authentication
 * code (HMAC) of the random half. So a forged token is rejected without a query to the store.
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Length of each half of a token in bytes (128 bits). */
const HALF_BYTES = 16;

export class SessionTokens {
  readonly #key: string;

  /** @param operatorKey key of the first operator; changing it ends all sessions */
  constructor(operatorKey: string) {
    this.#key = hash('sha256', `session:${operatorKey}`, 'hex');
  }

  /**
   * Returns a new token of 43 base64url characters: 128 bits from the operating system's random generator,
   * followed by 128 bits of their HMAC-SHA256.
   */
  make(): string {
    const random = randomBytes(HALF_BYTES);
    return Buffer.concat([random, this.#tagOf(random)]).toString('base64url');
  }

  /** Returns whether the service created the token. The store decides whether the session is still valid. */
  isOwn(token: string): boolean {
    const bytes = Buffer.from(token, 'base64url');
    if (bytes.length !== 2 * HALF_BYTES) return false;
    return timingSafeEqual(bytes.subarray(HALF_BYTES), this.#tagOf(bytes.subarray(0, HALF_BYTES)));
  }

  #tagOf(random: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(random).digest().subarray(0, HALF_BYTES);
  }
}
