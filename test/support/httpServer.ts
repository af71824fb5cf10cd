/** Which HTTP server the tests of this run are for. */
import type { HttpServerKind } from '../../src/api/server/listener.js';

/** As the service chooses it: HTTP_SERVER, else uWebSockets.js where its binding loads. */
export const HTTP_SERVER: HttpServerKind =
  (process.env.HTTP_SERVER as HttpServerKind | undefined) ??
  (await import('uWebSockets.js').then(
    () => 'uws' as const,
    () => 'node' as const,
  ));
