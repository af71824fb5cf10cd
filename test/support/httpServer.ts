/** Determines which HTTP server the tests use. */
import type { HttpServerKind } from '../../src/api/server/listener.js';

/**
 * The same choice as the service makes: HTTP_SERVER if set, otherwise uWebSockets.js if its binding loads.
 */
export const HTTP_SERVER: HttpServerKind =
  (process.env.HTTP_SERVER as HttpServerKind | undefined) ??
  (await import('uWebSockets.js').then(
    () => 'uws' as const,
    () => 'node' as const,
  ));
