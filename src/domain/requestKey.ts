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

/** For {@link requestKeyOfBytes}: the text that is hashed, and its first bytes by their number. A view costs half of what a hash does. */
const TEXT = Buffer.alloc(512);
const TEXTS: Buffer[] = [];
const COLON = 0x3a;

/**
 * The same of bytes: those of the partner's number, and of the requestId in UTF-8.
 * @param digitsFrom where the digits begin @param digitsTo after the last @param from where the requestId begins @param to after it
 */
export function requestKeyOfBytes(
  bytes: Buffer,
  digitsFrom: number,
  digitsTo: number,
  from: number,
  to: number,
): string {
  let length = 0;
  // Longer ones there are not: the schema of requests has their bound.
  if (digitsTo - digitsFrom + 1 + to - from > TEXT.length)
    return requestKey(
      Number(bytes.toString('latin1', digitsFrom, digitsTo)),
      bytes.toString('utf8', from, to),
    );
  for (let at = digitsFrom; at < digitsTo; at++) TEXT[length++] = bytes[at]!;
  TEXT[length++] = COLON;
  for (let at = from; at < to; at++) TEXT[length++] = bytes[at]!;
  TEXTS[length] ??= TEXT.subarray(0, length);
  return hash('sha256', TEXTS[length]!, 'binary');
}

/** 32 bits of a key, unsigned, the first byte highest. @param at where they begin */
export const keyWord = (key: string, at: number): number =>
  ((key.charCodeAt(at) << 24) |
    (key.charCodeAt(at + 1) << 16) |
    (key.charCodeAt(at + 2) << 8) |
    key.charCodeAt(at + 3)) >>>
  0;
