/** Keys of partners (`ks_…`) and operators (`kso_…`): made once, and what the service keeps of them. */
import { createHash, randomBytes } from 'node:crypto';
import { choice } from './schema.js';

/** Of the 43 random characters: 36 of 256 bits, so that what is left can't be guessed. */
const SHOWN_CHARACTERS = 6;
const KEY = /^kso?_(?=[\w-]{43}$)/;

/** What is stored of a key. */
export interface StoredKey {
  /** SHA-256. */
  readonly hash: Buffer;
  /** How it begins, such as `ks_Ab3xY9`; null: it is none that the service made, and no part of it is kept. */
  readonly prefix: string | null;
}

/** A new key: its kind and 43 base64url characters, 256 bits of the operating system's randomness. */
export const newKey = (kind: 'ks_' | 'kso_'): string => kind + randomBytes(32).toString('base64url');

export function storedKey(apiKey: string): StoredKey {
  const kind = KEY.exec(apiKey)?.[0];
  return {
    hash: createHash('sha256').update(apiKey).digest(),
    prefix: kind === undefined ? null : apiKey.slice(0, kind.length + SHOWN_CHARACTERS),
  };
}

/**
 * What a text may be the beginning of, as it is searched for: no more of a key than its prefix.
 * @returns undefined: it does not begin as keys do
 */
export function soughtPrefix(text: string): string | undefined {
  const kind = /^kso?_/.exec(text)?.[0];
  return kind === undefined ? undefined : text.slice(0, kind.length + SHOWN_CHARACTERS);
}

export const KeyStatus = choice(['active', 'revoked', 'expired']);
