/**
 * Answers requests for paths and methods that do not exist. An error names the methods of the path, or the
 * path that was probably meant. OPTIONS is answered for every path.
 */

import { ApiError, ERRORS, type Fault } from '../../domain/errors.js';
import { KIND } from '../../engine/cells/batch.js';
import { BASES } from '../contract/apis.js';
import type { Access } from './access.js';
import type { Exchange, RequestHead } from './exchange.js';
import type { Handle, ServerRoute } from './listener.js';
import { PendingCount } from './pendingCount.js';
import type { Replies } from './reply.js';
import { Router } from './router.js';
import type { Services } from './services.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
/** Maximum length of a path for which similar paths are searched, in characters. */
const SEARCHED_PATH_MAX = 512;

const segmentsOf = (path: string): string[] => path.replace(/^\/+|\/+$/g, '').split('/');

/**
 * Returns the paths that a client may have meant: the path without a trailing slash, and the path below each
 * base path, for a client that left out the base path or a part of it, such as the version.
 */
function meantPaths(path: string): string[] {
  const segments = segmentsOf(path);
  const below = Object.values(BASES).map((base) => {
    const baseSegments = segmentsOf(base);
    let sent = 0;
    for (const segment of baseSegments) if (segment === segments[sent]) sent++;
    return `/${[...baseSegments, ...segments.slice(sent)].join('/')}`;
  });
  return [...new Set([`/${segments.join('/')}`, ...below])];
}

/** Returns the pattern of a route as the documentation writes it: `/games/{id}`. */
const shownPattern = ({ pattern }: ServerRoute): string => pattern.replace(/:(\w+)/g, '{$1}');

/**
 * Creates the routes that answer all paths without a route of their own. Below a base path, the key is
 * checked first, and a partner's request counts against its rate limit. OPTIONS needs no key and is not
 * counted. Its answers have no CORS headers, because no browser may call the API.
 *
 * @param routes all routes with a specific method
 */
export function notFoundRoutes(
  routes: readonly ServerRoute[],
  services: { access: Access; replies: Replies; spinPath: Services['spinPath'] },
): ServerRoute[] {
  const { access, replies, spinPath } = services;
  const router = new Router(routes);
  const methodsOf = (path: string): string[] =>
    METHODS.filter((each) => router.find(each, path) !== undefined).map((each) => each.toUpperCase());

  /** Returns the patterns of the routes that the client of an unknown path may have meant. */
  const meantPatterns = (path: string): string[] => {
    if (path.length > SEARCHED_PATH_MAX) return [];
    const found = meantPaths(path).flatMap((meant) => METHODS.map((method) => router.find(method, meant)));
    return [...new Set(found.filter((route) => route !== undefined).map(shownPattern))];
  };

  const faultsOf = ({ method, path }: RequestHead): Fault[] => {
    const known = methodsOf(path);
    if (known.length > 0) {
      const message = `This path supports ${known.join(' and ')}, not ${method.toUpperCase()}`;
      return [{ path: '', message }];
    }
    const meant = meantPatterns(path);
    if (meant.length === 0) return [];
    return [{ path: '', message: `This path does not exist. Send the request to ${meant.join(' or ')}` }];
  };

  const refuse = (exchange: Exchange): void =>
    replies.error(exchange, ERRORS.notFound, undefined, { details: faultsOf(exchange.head) });

  const answerOptions = (exchange: Exchange): void => {
    const known = methodsOf(exchange.head.path);
    if (known.length === 0) {
      refuse(exchange);
      return;
    }
    const allowed = known.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    replies.json(exchange, 204, '', undefined, `Allow: ${[...allowed, 'OPTIONS'].join(', ')}`);
  };

  const route = (pattern: string, handle: Handle): ServerRoute => ({
    method: 'any',
    pattern,
    operation: 'notFound',
    bodyLimit: 0,
    handle: (exchange) => {
      if (exchange.head.method === 'options') answerOptions(exchange);
      else handle(exchange);
    },
  });
  const refuseCounted: Handle = (exchange) =>
    access.partner(exchange, (admission) => {
      const notFound = new ApiError(ERRORS.notFound, { details: faultsOf(exchange.head) });
      new PendingCount(exchange, admission, spinPath, replies, KIND.countApi, notFound).submit();
    });
  // The base path itself, without a trailing slash, also counts as a path below the base path.
  const below = (base: string, handle: Handle): ServerRoute[] => [
    route(base, handle),
    route(`${base}/*`, handle),
  ];
  return [
    ...below(BASES.partner, refuseCounted),
    ...below(BASES.play, refuseCounted),
    ...below(BASES.operator, (exchange) => access.operator(exchange, 'auditor', () => refuse(exchange))),
    route('/*', refuse),
  ];
}
