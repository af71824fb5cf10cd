/**
 * Derives the key by which Redis and the request-id runs identify a partner's requestId: the first bytes of a
 * SHA-256.
 */
import { hash } from 'node:crypto';

export const REQUEST_KEY_BYTES = 16;

export function writeRequestKey(buffer: Buffer, at: number, partnerId: number, requestId: string): void {
  const key = requestKey(partnerId, requestId);
  for (let i = 0; i < REQUEST_KEY_BYTES; i++) buffer[at + i] = key.charCodeAt(i);
}

/**
 * Returns the hash as a string of 32 one-byte characters, of which the first {@link REQUEST_KEY_BYTES} are
 * the key.
 */
export const requestKey = (partnerId: number, requestId: string): string =>
  hash('sha256', `${partnerId}:${requestId}`, 'binary');

/**
 * Buffers for {@link requestKeyOfBytes}: the text to hash, and reusable views of this text by length.
 * Creating a view costs half as much as a hash.
 */
const TEXT = Buffer.alloc(512);
const TEXTS: Buffer[] = [];
const COLON = 0x3a;

/**
 * Returns the key as {@link requestKey} does, from the bytes of the partner's number and of the requestId in
 * UTF-8.
 */
export function requestKeyOfBytes(
  bytes: Buffer,
  digitsFrom: number,
  digitsTo: number,
  from: number,
  to: number,
): string {
  let length = 0;
  // Longer texts do not occur, because the request schema limits them. This branch handles them anyway.
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

/** Returns 32 bits of a key, unsigned, most significant byte first. */
export const keyWord = (key: string, at: number): number =>
  ((key.charCodeAt(at) << 24) |
    (key.charCodeAt(at + 1) << 16) |
    (key.charCodeAt(at + 2) << 8) |
    key.charCodeAt(at + 3)) >>>
  0;
