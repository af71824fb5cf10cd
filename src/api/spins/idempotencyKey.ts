/**
 * Finds the requestId of a request outside the body's `requestId`: in the header Idempotency-Key
 * (draft-ietf-httpapi-idempotency-key-header), or in a body member with a similar name.
 */
import { type ApiError, type Fault, invalid } from '../../domain/errors.js';
import type { JsonObject } from '../server/body.js';
import { REPEATED } from '../server/listener.js';

/** Names of the idempotency key in other APIs, in lower case, without hyphens and underscores. */
const NAMES = new Set(['requestid', 'idempotencykey']);
/** Valid text of an idempotency key header: printable ASCII. */
const KEY = /^[ -~]{1,128}$/;

const refusal = (path: string, message: string): ApiError => invalid([{ path, message }]);

/**
 * Returns the unvalidated body of a request, with the requestId of the header if it has one.
 *
 * @param header value of Idempotency-Key; undefined: the header was not sent
 * @throws ApiError (KS-4101) if the client sent an idempotency key under a name that the service does not
 * accept
 */
export function withRequestId(body: JsonObject, header: string | undefined): JsonObject {
  refuseMisnamedRequestId(body);
  return header === undefined ? body : withIdempotencyKey(body, header);
}

/**
 * Refuses a body that has no requestId but a member with a similar name. Without this check, the request
 * would not be idempotent and the sender would not notice.
 */
function refuseMisnamedRequestId(body: JsonObject): void {
  if (body.requestId !== undefined) return;
  const faults = Object.keys(body)
    .filter((name) => NAMES.has(name.toLowerCase().replaceAll(/[-_]/g, '')))
    .map(
      (name): Fault => ({
        path: `/${name}`,
        message: 'is not supported. Send the idempotency key as requestId.',
      }),
    );
  if (faults.length > 0) throw invalid(faults);
}

/**
 * Returns the body with the requestId of the header.
 *
 * @param header value of Idempotency-Key, either plain or as a quoted string of structured fields
 * @throws ApiError (KS-4101) if the header is invalid or came twice, or the body has another requestId
 */
export function withIdempotencyKey<Body extends { readonly requestId?: unknown }>(
  body: Body,
  header: string,
): Body {
  const requestId = /^"(?:[^"\\]|\\["\\])*"$/.test(header)
    ? header.slice(1, -1).replaceAll(/\\(.)/g, '$1')
    : header;
  if (header.includes(REPEATED)) throw refusal('', 'The header Idempotency-Key must be sent only once');
  if (!KEY.test(requestId)) {
    throw refusal('', 'The header Idempotency-Key must have 1 to 128 printable ASCII characters');
  }
  if (body.requestId === undefined) return { ...body, requestId };
  if (body.requestId !== requestId) {
    throw refusal('/requestId', 'must equal the header Idempotency-Key');
  }
  return body;
}
