/** How Redis and the runs of request ids name a partner's requestId: by the first bytes of a SHA-256. */
import { hash } from 'node:crypto';

export const REQUEST_KEY_BYTES = 16;

/** Writes the key of a requestId. */
export function writeRequestKey(buffer: Buffer, at: number, partnerId: number, requestId: string): void {
  const key = requestKey(partnerId, requestId);
  for (let i = 0; i < REQUEST_KEY_BYTES; i++) buffer[at + i] = key.charCodeAt(i);
}

/** 32 bytes, each a character, of which the first {@link REQUEST_KEY_BYTES} are the key. */
export const requestKey = (partnerId: number, requestId: string): string =>
  hash('sha256', `${partnerId}:${requestId}`, 'binary');

/** 32 bits of a key, unsigned, the first byte highest. @param at where they begin */
export const keyWord = (key: string, at: number): number =>
  ((key.charCodeAt(at) << 24) |
    (key.charCodeAt(at + 1) << 16) |
    (key.charCodeAt(at + 2) << 8) |
    key.charCodeAt(at + 3)) >>>
  0;
