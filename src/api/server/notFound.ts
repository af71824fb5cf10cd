/**
 * Answers requests for paths that do not exist, and lists the allowed methods of a path that was requested
 * with another method.
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

/**
 * Creates the routes that answer all paths without a route of their own. Below a base path, the key is
 * checked first, and a partner's request counts against its rate limit.
 *
 * @param routes all routes with a specific method
 */
export function notFoundRoutes(
  routes: readonly ServerRoute[],
  services: { access: Access; replies: Replies; spinPath: Services['spinPath'] },
): ServerRoute[] {
  const { access, replies, spinPath } = services;
  const router = new Router(routes);
  const faultsOf = ({ method, path }: RequestHead): Fault[] => {
    const known = METHODS.filter((each) => router.find(each, path) !== undefined);
    if (known.length === 0) return [];
    const names = known.map((each) => each.toUpperCase()).join(' and ');
    return [{ path: '', message: `This path supports ${names}, not ${method.toUpperCase()}` }];
  };
  const refuse = (exchange: Exchange): void =>
    replies.error(exchange, ERRORS.notFound, undefined, { details: faultsOf(exchange.head) });
  const route = (pattern: string, handle: Handle): ServerRoute => ({
    method: 'any',
    pattern,
    operation: 'notFound',
    bodyLimit: 0,
    handle,
  });
  const refuseCounted: Handle = (exchange) =>
    access.partner(exchange, (partner) => {
      const notFound = new ApiError(ERRORS.notFound, { details: faultsOf(exchange.head) });
      spinPath.submit(new PendingCount(exchange, partner, replies, KIND.countApi, notFound));
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
