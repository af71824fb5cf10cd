/**
 * Serves the pages of /docs and /console. The build (tools) creates the pages; the server keeps them in
 * memory together with their compressed forms.
 */
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
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
  '.tgz': 'application/gzip',
  '': 'text/plain; charset=utf-8',
};

interface Site {
  readonly base: string;
  /**
   * Part of the Content Security Policy: what pages may load besides the site's own styles and images.
   * Nothing may be loaded from other origins.
   */
  readonly mayLoad: string;
}

/**
 * Allows scripts from the page's own origin and requests to it: the docs read their index and call the
 * partner API; the console calls the operator API.
 */
const OWN_SCRIPT = "script-src 'self'; connect-src 'self'; ";
const DOCS: Site = { base: '/docs', mayLoad: OWN_SCRIPT };
/** Page that is sent with status 404. It has no address of its own. */
const MISSING = `${DOCS.base}/404`;
const CONSOLE: Site = { base: '/console', mayLoad: OWN_SCRIPT };

const safetyOf = ({ mayLoad }: Site): string =>
  [
    `Content-Security-Policy: default-src 'none'; ${mayLoad}style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'X-Content-Type-Options: nosniff',
    'Referrer-Policy: no-referrer',
    'Cache-Control: public, max-age=300',
    'Vary: Accept-Encoding',
  ].join('\r\n');

/** Returns the policy for SVG images, which contain inline styles for light and dark mode. */
const imageSafety = (safety: string): string =>
  safety.replace("style-src 'self'", "style-src 'unsafe-inline'");

/** File endings of the compressed forms by content coding, best compression first. */
const CODINGS = { br: '.br', gzip: '.gz' } as const;

interface File {
  readonly type: string;
  readonly plain: Buffer;
  readonly coded: readonly { readonly coding: string; readonly bytes: Buffer }[];
}

/** Returns no pages if the build has created none. */
function readPages({ base }: Site, folder: string): ReadonlyMap<string, File> {
  const pages = new Map<string, File>();
  let names: string[] = [];
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(join(folder, name)).isFile(),
    );
  } catch {
    // The build has not created the pages. The service works without them.
  }
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const path = name === 'index.html' ? base : `${base}/${name.replace(/\.html$/, '')}`;
    pages.set(path, {
      type,
      plain: readFileSync(join(folder, name)),
      // Files in formats that are compressed already have no compressed form.
      coded: Object.entries(CODINGS)
        .filter(([, ending]) => names.includes(name + ending))
        .map(([coding, ending]) => ({ coding, bytes: readFileSync(join(folder, name + ending)) })),
    });
  }
  return pages;
}

/** Returns whether the Accept-Encoding header accepts a coding (RFC 9110, 12.5.3). */
function accepts(header: string, coding: string): boolean {
  return header
    .toLowerCase()
    .split(',')
    .map((part) => part.split(';').map((word) => word.trim()))
    .some(([name, weight]) => name === coding && !/^q=0(\.0*)?$/.test(weight ?? ''));
}

export interface Publishing {
  readonly access: Access;
  readonly replies: Replies;
  readonly window: PublicWindow;
}

/** Creates a route that needs no key and is rate-limited by client address. */
export const publicRoute = (
  pattern: string,
  operation: string,
  { access, replies, window }: Publishing,
  handle: (exchange: Exchange) => void,
): ServerRoute => ({
  method: 'get',
  pattern,
  operation,
  bodyLimit: 0,
  handle: (exchange) => {
    if (window.admits(access.clientOf(exchange))) handle(exchange);
    else window.refuse(exchange, replies);
  },
});

/** Returns a function that sends a file in the best form that the client accepts. */
function senderOf(site: Site, { replies }: Publishing) {
  const ofPages = safetyOf(site);
  return (exchange: Exchange, status: number, { type, plain, coded }: File): void => {
    const best = coded.find(({ coding }) => accepts(exchange.head.acceptEncoding, coding));
    const safety = type === TYPES['.svg'] ? imageSafety(ofPages) : ofPages;
    const headers = best === undefined ? safety : `${safety}\r\nContent-Encoding: ${best.coding}`;
    replies.json(exchange, status, best?.bytes ?? plain, undefined, headers, undefined, type);
  };
}

/** Returns no routes if the build has created no pages. */
function siteRoutes(
  site: Site,
  pages: ReadonlyMap<string, File>,
  operation: string,
  publishing: Publishing,
): ServerRoute[] {
  const send = senderOf(site, publishing);
  return [...pages].map(([path, file]) =>
    publicRoute(path, operation, publishing, (exchange) => send(exchange, 200, file)),
  );
}

const sendTo = (to: string, exchange: Exchange, { replies }: Publishing): void =>
  replies.json(exchange, 302, '', undefined, `Location: ${to}`, undefined, 'text/plain');

const redirect = (pattern: string, to: string, operation: string, publishing: Publishing): ServerRoute =>
  publicRoute(pattern, operation, publishing, (exchange) => sendTo(to, exchange, publishing));

/**
 * Creates the route of all other paths below the documentation. A path with slashes at its end redirects to
 * its page. Every other path is answered with a page of status 404 that links to the pages.
 */
function otherPaths(pages: ReadonlyMap<string, File>, missing: File, publishing: Publishing): ServerRoute {
  const send = senderOf(DOCS, publishing);
  return publicRoute(`${DOCS.base}/*`, 'docs', publishing, (exchange) => {
    const page = exchange.head.path.replace(/\/+$/, '');
    if (pages.has(page)) sendTo(page, exchange, publishing);
    else send(exchange, 404, missing);
  });
}

/** Creates the routes of the documentation, and of `/`, which redirects to the documentation. */
export function docsRoutes(folder: string, publishing: Publishing): ServerRoute[] {
  const { [MISSING]: missing, ...others } = Object.fromEntries(readPages(DOCS, folder));
  if (missing === undefined) return [];
  const pages = new Map(Object.entries(others));
  return [
    ...siteRoutes(DOCS, pages, 'docs', publishing),
    redirect('/', DOCS.base, 'docs', publishing),
    otherPaths(pages, missing, publishing),
  ];
}

export function consoleRoutes(folder: string, publishing: Publishing): ServerRoute[] {
  const routes = siteRoutes(CONSOLE, readPages(CONSOLE, folder), 'console', publishing);
  if (routes.length === 0) return [];
  return [...routes, redirect(`${CONSOLE.base}/`, CONSOLE.base, 'console', publishing)];
}
