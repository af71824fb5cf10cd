/** Reads the path parameters, query and body of a request, and validates them against the endpoint. */
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { BODY_LIMIT } from '../contract/apis.js';
import { type Endpoint, takesRequestId } from '../contract/endpoint.js';
import { withRequestId } from '../spins/idempotencyKey.js';
import { bodyText, check, checkContentEncoding, type JsonObject, parseObject, tooLong } from './body.js';
import type { Exchange } from './exchange.js';
import { readQuery } from './query.js';
import type { RouteRequest } from './route.js';

export function readRequest(
  route: Endpoint,
  names: readonly string[],
  base: string,
  exchange: Exchange,
): Pick<RouteRequest, 'params' | 'query' | 'body' | 'text' | 'isSecure'> {
  const parts = exchange.head.path.slice(base.length).split('/');
  const params: Record<string, string> = {};
  route.path.split('/').forEach((part, place) => {
    if (part.startsWith('{')) params[part.slice(1, -1)] = decodePart(parts[place] ?? '');
  });
  if (names.length > 0 && Object.keys(params).length !== names.length) throw new ApiError(ERRORS.notFound);
  const query = readQuery(route.query, exchange.head.query, 'playerId' in params ? PLAYER : undefined);
  if ('playerId' in params) takePlayer(params, query);
  let body: JsonObject = {};
  let text = '';
  if (route.body !== undefined) {
    if (exchange.lacksRoom) throw new ApiError(ERRORS.unavailable);
    if (exchange.body === undefined) {
      throw tooLong(route.bodyLimit ?? BODY_LIMIT);
    }
    checkContentEncoding(exchange.head.contentEncoding);
    text = bodyText(exchange.body);
    if (text !== '' || route.isBodyOptional !== true) body = parseObject(text);
    if (takesRequestId(route.body)) body = withRequestId(body, exchange.head.idempotencyKey);
    if (route.ownCheck !== true) check(route.body, body);
  }
  return { params, query, body, text, isSecure: exchange.head.requestOrigin.startsWith('https:') };
}

/** Placeholder for the player in the path, used if the query gives the player id. */
const IN_QUERY = '_';
const PLAYER = { playerId: { type: 'string' } };

/**
 * Moves the player id from the query to its placeholder in the path (docs/contract.md §2.3).
 *
 * @throws ApiError KS-4101 if the path has another value than the placeholder
 */
function takePlayer(params: Record<string, string>, query: Record<string, number | string>): void {
  const { playerId } = query;
  if (playerId === undefined) return;
  if (params.playerId !== IN_QUERY)
    throw invalid([
      {
        path: '/playerId',
        message: `can be sent in the query only if the path has ${IN_QUERY} in place of the player`,
      },
    ]);
  params.playerId = String(playerId);
  delete query.playerId;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalid([{ path: '', message: `The path segment «${part}» must be percent-encoded UTF-8` }]);
  }
}
