/** Reads the body of a spin: most of them straight from their bytes, all others by JSON.parse and the schema. */
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { bodyText, check, type JsonObject, parseObject } from '../server/body.js';
import type { Exchange } from '../server/exchange.js';
import { readQuery } from '../server/query.js';
import { SpinBody } from './contract.js';
import { withIdempotencyKey, withRequestId } from './idempotencyKey.js';
import { readPlainSpin } from './plainSpin.js';

export interface ReadBody {
  readonly body: SpinBody;
  /** As it was sent; undefined where it is known that no number has more than 15 characters. */
  readonly text: string | undefined;
}

/** The spin that a request asks for, or why it asks for none. */
export function readBody({
  body: bytes,
  lacksRoom,
  head: { idempotencyKey, query },
}: Pick<Exchange, 'body' | 'lacksRoom' | 'head'>): ReadBody | ApiError {
  try {
    if (query !== '') readQuery(undefined, query);
    if (bytes === undefined) throw lacksRoom ? new ApiError(ERRORS.unavailable) : tooLarge();
    const plain = readPlainSpin(bytes);
    if (plain === undefined) return readAnyBody(bytes, idempotencyKey);
    const body = idempotencyKey === undefined ? plain : withIdempotencyKey(plain, idempotencyKey);
    return { body, text: undefined };
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** @throws ApiError where it is no spin */
function readAnyBody(bytes: Buffer, idempotencyKey: string | undefined): ReadBody {
  const text = bodyText(bytes);
  const body = withRequestId(parseObject(text), idempotencyKey);
  if (!isPlainly(body)) check(SpinBody, body);
  return { body, text };
}

const tooLarge = (): ApiError => invalid([{ path: '', message: 'The body is over the limit' }]);

const PLAIN = /^[ -~]{1,128}$/;

/**
 * Most of the other bodies: every member of its type, texts in printable ASCII. Such a body fits the schema, whose Unicode patterns
 * cost several times this; any other is left to the schema to judge.
 */
function isPlainly(body: JsonObject): body is JsonObject & SpinBody {
  const { gameId, playerId, wagerUsd, requestId } = body;
  return (
    Number.isSafeInteger(gameId) &&
    (gameId as number) > 0 &&
    Number.isFinite(wagerUsd) &&
    typeof playerId === 'string' &&
    PLAIN.test(playerId) &&
    (requestId === undefined || (typeof requestId === 'string' && PLAIN.test(requestId)))
  );
}
