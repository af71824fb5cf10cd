/** Tokens of the console's sessions: half random, half a tag. So a token that was made up costs no question to the store. */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** 128 bits. */
const HALF_BYTES = 16;

export class SessionTokens {
  readonly #key: string;

  /** @param operatorKey of the first operator; all sessions are over once it is another one */
  constructor(operatorKey: string) {
    this.#key = hash('sha256', `session:${operatorKey}`, 'hex');
  }

  /** A new token: 43 base64url characters, 128 bits of the operating system's randomness and as many of their HMAC-SHA256. */
  make(): string {
    const random = randomBytes(HALF_BYTES);
    return Buffer.concat([random, this.#tagOf(random)]).toString('base64url');
  }

  /** Whether the service made the token; whether its session goes on the store knows. */
  isOwn(token: string): boolean {
    const bytes = Buffer.from(token, 'base64url');
    if (bytes.length !== 2 * HALF_BYTES) return false;
    return timingSafeEqual(bytes.subarray(HALF_BYTES), this.#tagOf(bytes.subarray(0, HALF_BYTES)));
  }

  #tagOf(random: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(random).digest().subarray(0, HALF_BYTES);
  }
}
