/**
 * Renders spin responses (docs/contract.md §8.3), as bytes: `outcome` and `presentation` are most of them, and were rendered
 * when the game was read.
 */
import { microsToUsdText } from '../../domain/money.js';
import { NO_TAIL, type SpinTail } from '../../domain/spinTail.js';

const BEGIN = Buffer.from('{"spinId":"');
const BALANCE = Buffer.from(',"balance":{"balanceUsd":');
const BONUS = '},"communityBonus":';
const NO_BONUS = Buffer.from(`${BONUS}null`);
const FORCED = ',"sandbox":{"forced":true}';
const REQUEST_ID = Buffer.from(',"requestId":');
/** The most that the rest takes: the fixed texts, a spin id, a balance, a requestId and a tier of 128 escaped characters each. */
const REST_BYTES_MAX = 512 + 2 * 128 * 6;

/** Every response begins with the same bytes: they stay. */
const newBuffer = (bytes: number): Buffer => Buffer.concat([BEGIN], bytes);
let buffer = newBuffer(16_384);
/** The buffer's first bytes, by their number: a view costs more to make than to keep. */
let views: Buffer[] = [];

/**
 * @param spinId ASCII
 * @param fragment the members `outcome` and `presentation` as UTF-8 JSON
 * @param balanceMicros micro-USD after the spin
 * @param communityBonus JSON
 * @returns the response as UTF-8 JSON: a view that holds until the next call.
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
/** Printable ASCII that JSON writes as it is. */
const PLAIN = /^[ !#-[\]-~]*$/;

function bytes(source: Uint8Array, at: number): number {
  buffer.set(source, at);
  return at + source.length;
}

/** Short texts: a loop is cheaper than a call out of JavaScript. */
function ascii(text: string, at: number): number {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i);
  return at + text.length;
}
