/** Determines which HTTP server the tests use. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { HEAD_BYTES_MAX, type HttpServerKind } from '../../src/api/server/listener.js';
import { ROOT } from './root.js';

// As the service does before it loads uWebSockets.js for the first time.
process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(HEAD_BYTES_MAX);

/**
 * The same choice as the service makes: HTTP_SERVER if set, otherwise uWebSockets.js if its binding loads.
 */
export const HTTP_SERVER: HttpServerKind =
  (process.env.HTTP_SERVER as HttpServerKind | undefined) ??
  (await import('uWebSockets.js').then(
    () => 'uws' as const,
    () => 'node' as const,
  ));

/** Whether uWebSockets.js uses its newer binding (tools/bindings.mjs), whose parser is stricter. */
export const IS_NEWER_BINDING =
  HTTP_SERVER === 'uws' && existsSync(join(ROOT, 'node_modules/uWebSockets.js/dist/bin/newer'));
