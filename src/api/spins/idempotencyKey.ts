/**
 * The requestId of a request where it is not in the body's member of that name: in the header Idempotency-Key
 * (draft-ietf-httpapi-idempotency-key-header), or under a name that callers take for it.
 */
import { type ApiError, type Fault, invalid } from '../../domain/errors.js';
import type { JsonObject } from '../server/body.js';

/** Names that other APIs give it, without case, hyphens and underscores. */
const NAMES = new Set(['requestid', 'idempotencykey']);
/** A header's text: printable ASCII. */
const KEY = /^[ -~]{1,128}$/;

const refusal = (path: string, message: string): ApiError => invalid([{ path, message }]);

/**
 * The body of a request that may have a requestId, before it is checked: with the one of the header, where that gives it one.
 * @param header the value of Idempotency-Key; undefined: it was not sent
 * @throws ApiError (KS-4101) where the sender means a requestId that is not taken as one
 */
export function withRequestId(body: JsonObject, header: string | undefined): JsonObject {
  refuseMisnamedRequestId(body);
  return header === undefined ? body : withIdempotencyKey(body, header);
}

/**
 * A body without a requestId whose sender means another member by it would not be idempotent, which nobody notices.
 * @throws ApiError (KS-4101) that gives the right name
 */
function refuseMisnamedRequestId(body: JsonObject): void {
  if (body.requestId !== undefined) return;
  const faults = Object.keys(body)
    .filter((name) => NAMES.has(name.toLowerCase().replaceAll(/[-_]/g, '')))
    .map((name): Fault => ({ path: `/${name}`, message: 'is not known: the idempotency key is requestId' }));
  if (faults.length > 0) throw invalid(faults);
}

/**
 * A body with the requestId that the header gives it.
 * @param header the value of Idempotency-Key, as it is or as a structured field's string, in quotation marks
 * @throws ApiError (KS-4101) where the header is none, or the body has another requestId
 */
export function withIdempotencyKey<Body extends { readonly requestId?: unknown }>(
  body: Body,
  header: string,
): Body {
  const requestId = /^"(?:[^"\\]|\\["\\])*"$/.test(header)
    ? header.slice(1, -1).replaceAll(/\\(.)/g, '$1')
    : header;
  if (!KEY.test(requestId)) {
    throw refusal('', 'The header Idempotency-Key must have 1 to 128 printable ASCII characters');
  }
  if (body.requestId === undefined) return { ...body, requestId };
  if (body.requestId !== requestId) {
    throw refusal('/requestId', 'differs from the header Idempotency-Key');
  }
  return body;
}
