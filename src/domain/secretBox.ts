/**
 * Encrypts secrets for the database with AES-256-GCM (NIST SP 800-38D) and a nonce of 96 random bits each.
 *
 * A sealed text is `v1.<key id>.<base64url of nonce, ciphertext and tag>`. The key id, the first 8
 * hexadecimal digits of the key's SHA-256, identifies the key among several, so that keys can be replaced one
 * after the other.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';
const SEALED = /^v1\.([0-9a-f]{8})\.([A-Za-z0-9_-]+)$/;

/** Generates a key for {@link SecretBox}: 32 random bytes in base64. */
export const newBoxKey = (): string => randomBytes(32).toString('base64');

export class UnknownKeyError extends Error {
  constructor(readonly keyId: string) {
    super(`The secret is encrypted with key ${keyId}, which is not one of the configured keys`);
  }
}

export class SecretBox {
  /** Encryption keys by key id, newest first. */
  readonly #keys: ReadonlyMap<string, Buffer>;
  /** Id of the newest key. Undefined if there are no keys and nothing is sealed. */
  readonly #newest: string | undefined;

  /**
   * @param keys keys of 32 bytes in base64; the first key seals, any of them can open
   * @throws RangeError if a key is invalid
   */
  constructor(keys: readonly string[]) {
    const all = keys.map((text): [string, Buffer] => {
      const key = Buffer.from(text, 'base64');
      if (key.length !== 32) throw new RangeError('An encryption key must have 32 bytes in base64');
      return [createHash('sha256').update(key).digest('hex').slice(0, 8), key];
    });
    this.#keys = new Map(all);
    this.#newest = all[0]?.[0];
  }

  /** Id of the key that seals. Undefined if nothing is sealed. */
  get keyId(): string | undefined {
    return this.#newest;
  }

  opens(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  /** Prefix of newly sealed texts. Undefined if nothing is sealed. */
  get prefix(): string | undefined {
    return this.#newest === undefined ? undefined : `v1.${this.#newest}.`;
  }

  /** @returns the secret unchanged if there is no key */
  seal(secret: string): string {
    if (this.#newest === undefined) return secret;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#keys.get(this.#newest)!, nonce);
    const sealed = Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `v1.${this.#newest}.${sealed.toString('base64url')}`;
  }

  /**
   * Opens a sealed text. A text that is not sealed is returned unchanged, because earlier versions stored
   * secrets like that.
   * @throws UnknownKeyError; Error if the text was tampered with
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
