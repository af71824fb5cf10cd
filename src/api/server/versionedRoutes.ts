/**
 * Serves routes under an API version. Each answer announces the end of the version. After the end of the
 * version, all requests are refused.
 */
import { ERRORS } from '../../domain/errors.js';
import type { Handle, ServerRoute } from './listener.js';
import type { Replies } from './reply.js';
import type { ServedVersion } from './servedVersion.js';

/**
 * Wraps the routes below a base path. Every answer announces the end of their version. After the sunset they
 * only answer 410. Routes outside the base path stay unchanged.
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
