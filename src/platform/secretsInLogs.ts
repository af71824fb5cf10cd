/** What log lines and messages are made of, and what they must not have. */
import { seedsOf } from '../domain/storeUrl.js';

/** In place of a secret. */
export const HIDDEN = '[hidden]';

/** API keys and webhook secrets, whosever they are. */
const ISSUED = /\b(kso?_|whsec_)[\w+/=-]{16,}/g;
/** In a URL, between its scheme and its host. */
const USERINFO = /(\w+:\/\/)[^\s/@"\\]+@/g;
/** A shorter text may be part of any word. */
const SECRET_CHARACTERS_MIN = 8;

/** A text without secrets: those that are given, and what looks like a key or the password of a URL. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  let clean = text.replace(ISSUED, HIDDEN).replace(USERINFO, `$1${HIDDEN}@`);
  for (const secret of secrets) clean = clean.replaceAll(secret, HIDDEN);
  return clean;
}

/** Secrets as they may be written: as they are given, percent-encoded, decoded, within a JSON string. */
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

/** A store's address without user and password. */
export const addressOf = (url: string): string => {
  try {
    const [first, ...others] = seedsOf(url).map((seed) => new URL(seed));
    const hosts = [first!, ...others].map(({ host }) => host).join(',');
    return `${first!.protocol}//${hosts}${first!.pathname}`;
  } catch {
    return 'the given URL';
  }
};

/** An error's message in one line. */
export const lineOf = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0) return lineOf(error.errors[0]);
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? 'unknown';
};
