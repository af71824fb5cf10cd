/**
 * API keys of partners (`ks_…`) and operators (`kso_…`): their creation, and the parts that the service
 * stores.
 */
import { createHash, randomBytes } from 'node:crypto';
import { choice } from './schema.js';

/**
 * Number of a key's 43 random characters that are stored in clear. They have 36 of the key's 256 bits, so the
 * rest can't be guessed.
 */
const SHOWN_CHARACTERS = 6;
const KEY = /^kso?_(?=[\w-]{43}$)/;

export interface StoredKey {
  /** SHA-256 of the API key. */
  readonly hash: Buffer;
  /**
   * Prefix of the key, such as `ks_Ab3xY9`. Null for a key that the service did not generate, because no part
   * of such a key is stored.
   */
  readonly prefix: string | null;
}

/**
 * Generates a new key: its kind and 43 base64url characters with 256 bits from the operating system's random
 * generator.
 */
export const newKey = (kind: 'ks_' | 'kso_'): string => kind + randomBytes(32).toString('base64url');

export function storedKey(apiKey: string): StoredKey {
  const kind = KEY.exec(apiKey)?.[0];
  return {
    hash: createHash('sha256').update(apiKey).digest(),
    prefix: kind === undefined ? null : apiKey.slice(0, kind.length + SHOWN_CHARACTERS),
  };
}

/**
 * Shortens a search text to the length of a stored prefix, so that the search never uses more of a key than
 * its prefix.
 * @returns undefined if the text does not begin like a key
 */
export function soughtPrefix(text: string): string | undefined {
  const kind = /^kso?_/.exec(text)?.[0];
  return kind === undefined ? undefined : text.slice(0, kind.length + SHOWN_CHARACTERS);
}

export const KeyStatus = choice(['active', 'revoked', 'expired']);
