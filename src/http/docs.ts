/** The pages of /docs: made by the build (tools/docs), held in memory with their compressed forms, sent as they are. */
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Access } from './access.js';
import type { Exchange } from './exchange.js';
import type { ServerRoute } from './listener.js';
import type { PublicWindow } from './publicWindow.js';
import type { Replies } from './reply.js';

const BASE = '/docs';
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** A page has no script, and nothing from elsewhere. */
const SAFETY = [
  "Content-Security-Policy: default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options: nosniff',
  'Referrer-Policy: no-referrer',
  'Cache-Control: public, max-age=300',
  'Vary: Accept-Encoding',
].join('\r\n');

/** An image has a style of its own, for light and dark. */
const IMAGE_SAFETY = SAFETY.replace("style-src 'self'", "style-src 'unsafe-inline'");

/** By the coding's name, the best first. */
const CODINGS = { br: '.br', gzip: '.gz' } as const;

interface File {
  readonly type: string;
  readonly plain: Buffer;
  readonly coded: readonly { readonly coding: string; readonly bytes: Buffer }[];
}

/** Reads the pages; none where the build has made none. @param folder `dist/docs` */
function readPages(folder: string): ReadonlyMap<string, File> {
  const pages = new Map<string, File>();
  let names: string[] = [];
  try {
    names = readdirSync(folder);
  } catch {
    // Not built: the service does without.
  }
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const path = name === 'index.html' ? BASE : `${BASE}/${name.replace(/\.html$/, '')}`;
    pages.set(path, {
      type,
      plain: readFileSync(join(folder, name)),
      coded: Object.entries(CODINGS).map(([coding, ending]) => ({
        coding,
        bytes: readFileSync(join(folder, name + ending)),
      })),
    });
  }
  return pages;
}

/** Whether Accept-Encoding takes a coding (RFC 9110, 12.5.3). */
function accepts(header: string, coding: string): boolean {
  return header
    .toLowerCase()
    .split(',')
    .map((part) => part.split(';').map((word) => word.trim()))
    .some(([name, weight]) => name === coding && !/^q=0(\.0*)?$/.test(weight ?? ''));
}

/**
 * The routes of the pages, and of `/`, which leads there. Anybody may ask for them, within a window by address.
 * @param folder where the build has put them
 */
export function docsRoutes(
  folder: string,
  { access, replies, window }: { access: Access; replies: Replies; window: PublicWindow },
): ServerRoute[] {
  const pages = readPages(folder);
  const route = (pattern: string, handle: (exchange: Exchange) => void): ServerRoute => ({
    method: 'get',
    pattern,
    answersHead: true,
    operation: 'docs',
    bodyLimit: 0,
    handle: (exchange) => {
      if (window.admits(access.clientOf(exchange))) handle(exchange);
      else window.refuse(exchange, replies);
    },
  });
  const routes = [...pages].map(([path, { type, plain, coded }]) =>
    route(path, (exchange) => {
      const best = coded.find(({ coding }) => accepts(exchange.head.acceptEncoding, coding));
      const safety = type === TYPES['.svg'] ? IMAGE_SAFETY : SAFETY;
      const headers = best === undefined ? safety : `${safety}\r\nContent-Encoding: ${best.coding}`;
      replies.json(exchange, 200, best?.bytes ?? plain, undefined, headers, undefined, type);
    }),
  );
  if (!pages.has(BASE)) return [];
  const toDocs = (exchange: Exchange): void =>
    replies.json(exchange, 302, '', undefined, `Location: ${BASE}`, undefined, 'text/plain');
  return [...routes, route('/', toDocs), route(`${BASE}/`, toDocs)];
}
