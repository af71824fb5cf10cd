/**
 * Encrypts the secrets of webhooks for the database: AES-256-GCM (NIST SP 800-38D), a nonce of 96 random bits each.
 *
 * A sealed text is `v1.<key id>.<base64url of nonce, ciphertext and tag>`. The key id, the first 8 hexadecimal digits of the
 * key's SHA-256, tells which of several keys it was sealed with, so keys are replaced one after the other.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';
const SEALED = /^v1\.([0-9a-f]{8})\.([A-Za-z0-9_-]+)$/;

/** 32 random bytes, base64: what {@link SecretBox} takes. */
export const newBoxKey = (): string => randomBytes(32).toString('base64');

export class UnknownKeyError extends Error {
  constructor(readonly keyId: string) {
    super(`The secret is encrypted with key ${keyId}, which is not among the keys`);
  }
}

export class SecretBox {
  /** Newest first. */
  readonly #keys: ReadonlyMap<string, Buffer>;
  /** Undefined: nothing is sealed. */
  readonly #newest: string | undefined;

  /** @param keys each 32 bytes in base64; the first one seals, all of them open. @throws RangeError where one is not */
  constructor(keys: readonly string[]) {
    const all = keys.map((text): [string, Buffer] => {
      const key = Buffer.from(text, 'base64');
      if (key.length !== 32) throw new RangeError('A key is 32 bytes in base64');
      return [createHash('sha256').update(key).digest('hex').slice(0, 8), key];
    });
    this.#keys = new Map(all);
    this.#newest = all[0]?.[0];
  }

  /** Id of the key that seals; undefined: nothing is sealed. */
  get keyId(): string | undefined {
    return this.#newest;
  }

  /** Whether what was sealed with a key can be opened. */
  opens(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  /** What sealed texts begin with; undefined: nothing is sealed. */
  get prefix(): string | undefined {
    return this.#newest === undefined ? undefined : `v1.${this.#newest}.`;
  }

  /** @returns the secret as it is where there is no key */
  seal(secret: string): string {
    if (this.#newest === undefined) return secret;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#keys.get(this.#newest)!, nonce);
    const sealed = Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `v1.${this.#newest}.${sealed.toString('base64url')}`;
  }

  /**
   * What was sealed; a text that is not sealed is given as it is, since versions before this one wrote it so.
   * @throws UnknownKeyError; Error where the text was tampered with
   */
  open(text: string): string {
    const [, keyId, body] = SEALED.exec(text) ?? [];
    if (keyId === undefined || body === undefined) return text;
    const key = this.#keys.get(keyId);
    if (key === undefined) throw new UnknownKeyError(keyId);
    const sealed = Buffer.from(body, 'base64url');
    const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const opened = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([opened, decipher.final()]).toString('utf8');
  }
}
