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

/** Returns whether one letter, added, left out or changed, makes one word out of the other. */
function isOneLetterOff(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  if (long.length - short.length > 1) return false;
  let same = 0;
  while (same < short.length && short[same] === long[same]) same++;
  return short.slice(same + (short.length === long.length ? 1 : 0)) === long.slice(same + 1);
}

const WORDS_OF_BASES = new Set(Object.values(BASES).flatMap(segmentsOf));
const isVersion = (segment: string): boolean => /^v\d+$/i.test(segment);

/** A path without its base path: a client may have left out the base path, a part of it, or its version. */
interface Asked {
  readonly ofBase: readonly string[];
  readonly rest: readonly string[];
}

function askedOf(path: string): Asked {
  const segments = segmentsOf(path);
  const start = segments.findIndex((each) => !WORDS_OF_BASES.has(each) && !isVersion(each));
  const at = start < 0 ? segments.length - 1 : start;
  return { ofBase: segments.slice(0, at).filter((each) => !isVersion(each)), rest: segments.slice(at) };
}

/**
 * Returns how far the path of a request is from a route's: 1 for a segment with wrong capitals, 2 for one
 * with a wrong letter. Undefined if it is another path.
 */
function slipsOf({ ofBase, rest }: Asked, { pattern }: ServerRoute): number | undefined {
  const base = Object.values(BASES).find((each) => pattern.startsWith(`${each}/`)) ?? '';
  const own = segmentsOf(pattern.slice(base.length));
  if (own.length !== rest.length || own.includes('*')) return undefined;
  if (!ofBase.every((each) => segmentsOf(base).includes(each))) return undefined;
  let slips = 0;
  for (const [at, segment] of own.entries()) {
    const sent = rest[at]!;
    if (segment.startsWith(':') ? sent !== '' : sent === segment) continue;
    const word = sent.toLowerCase();
    if (segment.startsWith(':') || (word !== segment && !isOneLetterOff(word, segment))) return undefined;
    slips += word === segment ? 1 : 2;
  }
  return slips;
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
    const asked = askedOf(path);
    const found = routes.map((each) => ({ pattern: shownPattern(each), slips: slipsOf(asked, each) }));
    const least = Math.min(...found.map(({ slips = Number.POSITIVE_INFINITY }) => slips));
    return [...new Set(found.filter(({ slips }) => slips === least).map(({ pattern }) => pattern))];
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
