/**
 * Parses the body of a spin: most bodies directly from their bytes, all others by JSON.parse and the schema.
 */
import { ApiError, ERRORS } from '../../domain/errors.js';
import { bodyText, check, checkContentEncoding, parseObject, tooLong } from '../server/body.js';
import type { Exchange } from '../server/exchange.js';
import { readQuery } from '../server/query.js';
import { SPIN_BYTES_MAX, SpinBody } from './contract.js';
import { withIdempotencyKey, withRequestId } from './idempotencyKey.js';
import { readPlainSpin } from './plainSpin.js';

export interface ReadBody {
  readonly body: SpinBody;
  /** Body text as sent. Undefined if no number in it has more than 15 characters. */
  readonly text: string | undefined;
}

export function readBody({
  body: bytes,
  lacksRoom,
  head: { idempotencyKey, query, contentEncoding },
}: Pick<Exchange, 'body' | 'lacksRoom' | 'head'>): ReadBody | ApiError {
  try {
    if (query !== '') readQuery(undefined, query);
    if (bytes === undefined) throw lacksRoom ? new ApiError(ERRORS.unavailable) : tooLong(SPIN_BYTES_MAX);
    checkContentEncoding(contentEncoding);
    const plain = readPlainSpin(bytes);
    if (plain === undefined) return readAnyBody(bytes, idempotencyKey);
    const body = idempotencyKey === undefined ? plain : withIdempotencyKey(plain, idempotencyKey);
    return { body, text: undefined };
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/**
 * Parses a body by JSON.parse.
 *
 * @throws ApiError if the body is not a valid spin
 */
function readAnyBody(bytes: Buffer, idempotencyKey: string | undefined): ReadBody {
  const text = bodyText(bytes);
  const body = withRequestId(parseObject(text), idempotencyKey);
  check(SpinBody, body);
  return { body, text };
}
