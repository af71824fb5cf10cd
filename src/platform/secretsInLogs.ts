/** Removes secrets from log lines and messages. */
import { seedsOf } from '../domain/storeUrl.js';

/** Replacement for a secret in a log line. */
export const HIDDEN = '[hidden]';

/** Matches API keys and webhook secrets of any owner. */
const ISSUED = /\b(kso?_|whsec_)[\w+/=-]{16,}/g;
/** Matches the user information between the scheme and the host of a URL. */
const USERINFO = /(\w+:\/\/)[^\s/@"\\]+@/g;
/** Minimum length of a secret that is removed, because a shorter text may be part of any word. */
const SECRET_CHARACTERS_MIN = 8;

/**
 * Returns a text without secrets. Removes the given secrets, and texts that look like a key or like the
 * password in a URL.
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  let clean = text.replace(ISSUED, HIDDEN).replace(USERINFO, `$1${HIDDEN}@`);
  for (const secret of secrets) clean = clean.replaceAll(secret, HIDDEN);
  return clean;
}

/**
 * Returns all forms in which secrets may be written: unchanged, percent-encoded, decoded, and within a JSON
 * string.
 */
export function spellings(secrets: readonly (string | undefined)[]): string[] {
  const given = secrets.filter((secret) => secret !== undefined);
  const all = given
    .flatMap((secret) => [secret, encodeURIComponent(secret), decoded(secret)])
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return [...new Set(all)].filter((secret) => secret.length >= SECRET_CHARACTERS_MIN);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the URL of a store without user and password. */
export const addressOf = (url: string): string => {
  try {
    const [first, ...others] = seedsOf(url).map((seed) => new URL(seed));
    const hosts = [first!, ...others].map(({ host }) => host).join(',');
    return `${first!.protocol}//${hosts}${first!.pathname}`;
  } catch {
    return 'the given URL';
  }
};

export const lineOf = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0) return lineOf(error.errors[0]);
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? 'unknown';
};
