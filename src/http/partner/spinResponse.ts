/**
 * Renders spin responses (docs/contract.md §8.3), as bytes: `outcome` and `presentation` are most of them, and were rendered
 * when the game was read.
 */
import { microsToUsdText } from '../../domain/money.js';

const BEGIN = '{"spinId":"';
const BALANCE = ',"balance":{"balanceUsd":';
const BONUS = '},"communityBonus":';
const FORCED = ',"sandbox":{"forced":true}';
const REQUEST_ID = ',"requestId":';
/** The most that the rest takes: the fixed texts, a spin id, a balance, a requestId and a tier of 128 escaped characters each. */
const REST_BYTES_MAX = 512 + 2 * 128 * 6;

let buffer = Buffer.allocUnsafe(16_384);
/** The buffer's first bytes, by their number: a view costs more to make than to keep. */
let views: Buffer[] = [];

/**
 * @param spinId ASCII
 * @param fragment the members `outcome` and `presentation` as UTF-8 JSON
 * @param balanceMicros micro-USD after the spin
 * @param communityBonus JSON
 * @param isForced a tester chose the outcome
 * @returns the response as UTF-8 JSON: a view that holds until the next call.
 */
export function spinResponse(
  spinId: string,
  fragment: Buffer,
  balanceMicros: number,
  requestId: string | undefined | null,
  communityBonus = 'null',
  isForced = false,
): Buffer {
  if (buffer.length < fragment.length + REST_BYTES_MAX) {
    buffer = Buffer.allocUnsafe(2 * (fragment.length + REST_BYTES_MAX));
    views = [];
  }
  let at = ascii(BEGIN, 0);
  at = ascii(spinId, at);
  at = ascii('",', at);
  buffer.set(fragment, at);
  at = ascii(BALANCE, at + fragment.length);
  at = ascii(microsToUsdText(balanceMicros), at);
  at = ascii(BONUS, at);
  if (communityBonus === 'null') at = ascii(communityBonus, at);
  else at += buffer.write(communityBonus, at);
  if (isForced) at = ascii(FORCED, at);
  if (requestId !== undefined && requestId !== null) {
    at = ascii(REQUEST_ID, at);
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

/** Short texts: a loop is cheaper than a call out of JavaScript. */
function ascii(text: string, at: number): number {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i);
  return at + text.length;
}
