/** Puts routes under a version of the API: each answer says when it ends, and after its end there is no other answer. */
import { ERRORS } from '../../domain/errors.js';
import type { Handle, ServerRoute } from './listener.js';
import type { Replies } from './reply.js';
import type { ServedVersion } from './servedVersion.js';

/**
 * The routes below a base, with every answer saying when their version ends; after its sunset they answer 410 and do nothing
 * else. Other routes stay as they are.
 */
export const ofVersion = (
  version: ServedVersion,
  base: string,
  routes: readonly ServerRoute[],
  replies: Replies,
): ServerRoute[] =>
  routes.map((route) => {
    if (route.pattern !== base && !route.pattern.startsWith(`${base}/`)) return route;
    const handle: Handle = (exchange) => {
      exchange.version = version;
      version.count();
      if (version.isGone)
        replies.error(exchange, ERRORS.apiVersionGone, undefined, { message: version.goneMessage });
      else route.handle(exchange);
    };
    return { ...route, handle };
  });
