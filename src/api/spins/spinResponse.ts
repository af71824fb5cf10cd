/**
 * Renders spin responses (docs/contract.md §8.3) as bytes. `outcome` and `presentation` make up most of a
 * response; they were rendered when the game was loaded.
 */
import { microsToUsdText } from '../../domain/money.js';
import { NO_TAIL, type SpinTail } from '../../domain/spinTail.js';

const BEGIN = Buffer.from('{"spinId":"');
const BALANCE = Buffer.from(',"balance":{"balanceUsd":');
const BONUS = '},"communityBonus":';
const NO_BONUS = Buffer.from(`${BONUS}null`);
export const FORCED = ',"sandbox":{"forced":true}';
const REQUEST_ID = Buffer.from(',"requestId":');
/**
 * Maximum bytes of a response without its fragment: the fixed texts, a spin id, a balance, and a requestId
 * and a tier name of 128 escaped characters each.
 */
const REST_BYTES_MAX = 512 + 2 * 128 * 6;

/** Creates a buffer that starts with the bytes that all responses have in common. */
const newBuffer = (bytes: number): Buffer => Buffer.concat([BEGIN], bytes);
let buffer = newBuffer(16_384);
/**
 * Views of the buffer's first n bytes, by n. Keeping a view is cheaper than creating it for each response.
 */
let views: Buffer[] = [];

/**
 * @param spinId ASCII text
 * @param fragment the members `outcome` and `presentation` as UTF-8 JSON
 * @param communityBonus JSON text
 * @returns the response as UTF-8 JSON, in a view that is valid until the next call
 */
export function spinResponse(
  spinId: string,
  fragment: Buffer,
  balanceMicros: number,
  requestId: string | undefined | null,
  { isForced }: SpinTail = NO_TAIL,
  communityBonus = 'null',
): Buffer {
  if (buffer.length < fragment.length + REST_BYTES_MAX) {
    buffer = newBuffer(2 * (fragment.length + REST_BYTES_MAX));
    views = [];
  }
  let at = ascii(spinId, BEGIN.length);
  at = ascii('",', at);
  at = bytes(fragment, at);
  at = bytes(BALANCE, at);
  at = ascii(microsToUsdText(balanceMicros), at);
  if (communityBonus === 'null') at = bytes(NO_BONUS, at);
  else at += buffer.write(BONUS + communityBonus, at);
  if (isForced) at = ascii(FORCED, at);
  if (requestId !== undefined && requestId !== null) {
    at = bytes(REQUEST_ID, at);
    if (PLAIN.test(requestId)) {
      buffer[at] = QUOTE;
      at = ascii(requestId, at + 1);
      buffer[at++] = QUOTE;
    } else {
      at += buffer.write(JSON.stringify(requestId), at);
    }
  }
  buffer[at++] = CLOSING_BRACE;
  views[at] ??= buffer.subarray(0, at);
  return views[at]!;
}

const QUOTE = 0x22;
const CLOSING_BRACE = 0x7d;
/** Printable ASCII text that JSON needs not escape. */
const PLAIN = /^[ !#-[\]-~]*$/;

function bytes(source: Uint8Array, at: number): number {
  buffer.set(source, at);
  return at + source.length;
}

/** Writes a short ASCII text. A loop is cheaper than a call into native code. */
function ascii(text: string, at: number): number {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i);
  return at + text.length;
}
