/** The pages of /docs and of /console: made by the build (tools), held in memory with their compressed forms, sent as they are. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Access } from './access.js';
import type { Exchange } from './exchange.js';
import type { ServerRoute } from './listener.js';
import type { PublicWindow } from './publicWindow.js';
import type { Replies } from './reply.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
  '.tgz': 'application/gzip',
  '': 'text/plain; charset=utf-8',
};

/** Pages below one path. */
interface Site {
  readonly base: string;
  /** What a page may load beside styles and images of its own. Nothing comes from elsewhere. */
  readonly mayLoad: string;
}

/** A script and requests of its own: docs read their index and try the partner API, the console asks the operator API. */
const OWN_SCRIPT = "script-src 'self'; connect-src 'self'; ";
const DOCS: Site = { base: '/docs', mayLoad: OWN_SCRIPT };
const CONSOLE: Site = { base: '/console', mayLoad: OWN_SCRIPT };

const safetyOf = ({ mayLoad }: Site): string =>
  [
    `Content-Security-Policy: default-src 'none'; ${mayLoad}style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'X-Content-Type-Options: nosniff',
    'Referrer-Policy: no-referrer',
    'Cache-Control: public, max-age=300',
    'Vary: Accept-Encoding',
  ].join('\r\n');

/** An image has a style of its own, for light and dark. */
const imageSafety = (safety: string): string =>
  safety.replace("style-src 'self'", "style-src 'unsafe-inline'");

/** By the coding's name, the best first. */
const CODINGS = { br: '.br', gzip: '.gz' } as const;

interface File {
  readonly type: string;
  readonly plain: Buffer;
  readonly coded: readonly { readonly coding: string; readonly bytes: Buffer }[];
}

/** Reads the pages; none where the build has made none. @param folder such as `dist/docs` */
function readPages({ base }: Site, folder: string): ReadonlyMap<string, File> {
  const pages = new Map<string, File>();
  let names: string[] = [];
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(join(folder, name)).isFile(),
    );
  } catch {
    // Not built: the service does without.
  }
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const path = name === 'index.html' ? base : `${base}/${name.replace(/\.html$/, '')}`;
    pages.set(path, {
      type,
      plain: readFileSync(join(folder, name)),
      // What is compressed itself has no compressed form.
      coded: Object.entries(CODINGS)
        .filter(([, ending]) => names.includes(name + ending))
        .map(([coding, ending]) => ({ coding, bytes: readFileSync(join(folder, name + ending)) })),
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

/** What the pages are given out with. */
export interface Publishing {
  readonly access: Access;
  readonly replies: Replies;
  readonly window: PublicWindow;
}

/** A route that anybody may ask, within a window by address. */
export const publicRoute = (
  pattern: string,
  operation: string,
  { access, replies, window }: Publishing,
  handle: (exchange: Exchange) => void,
): ServerRoute => ({
  method: 'get',
  pattern,
  answersHead: true,
  operation,
  bodyLimit: 0,
  handle: (exchange) => {
    if (window.admits(access.clientOf(exchange))) handle(exchange);
    else window.refuse(exchange, replies);
  },
});

/** A route for each page of a site; none where the build has made none. */
function siteRoutes(site: Site, folder: string, operation: string, publishing: Publishing): ServerRoute[] {
  const { replies } = publishing;
  const ofPages = safetyOf(site);
  return [...readPages(site, folder)].map(([path, { type, plain, coded }]) =>
    publicRoute(path, operation, publishing, (exchange) => {
      const best = coded.find(({ coding }) => accepts(exchange.head.acceptEncoding, coding));
      const safety = type === TYPES['.svg'] ? imageSafety(ofPages) : ofPages;
      const headers = best === undefined ? safety : `${safety}\r\nContent-Encoding: ${best.coding}`;
      replies.json(exchange, 200, best?.bytes ?? plain, undefined, headers, undefined, type);
    }),
  );
}

const redirect = (pattern: string, to: string, operation: string, publishing: Publishing): ServerRoute =>
  publicRoute(pattern, operation, publishing, (exchange) =>
    publishing.replies.json(exchange, 302, '', undefined, `Location: ${to}`, undefined, 'text/plain'),
  );

/** The routes of the documentation, and of `/`, which leads there. @param folder where the build has put it */
export function docsRoutes(folder: string, publishing: Publishing): ServerRoute[] {
  const routes = siteRoutes(DOCS, folder, 'docs', publishing);
  if (routes.length === 0) return [];
  const leading = ['/', `${DOCS.base}/`].map((from) => redirect(from, DOCS.base, 'docs', publishing));
  return [...routes, ...leading];
}

/** The routes of the console. @param folder where the build has put it */
export function consoleRoutes(folder: string, publishing: Publishing): ServerRoute[] {
  const routes = siteRoutes(CONSOLE, folder, 'console', publishing);
  if (routes.length === 0) return [];
  return [...routes, redirect(`${CONSOLE.base}/`, CONSOLE.base, 'console', publishing)];
}
