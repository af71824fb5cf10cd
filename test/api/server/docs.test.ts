/**
 * Tests the built pages of /docs: they are served compressed and with safe headers, their links work, and
 * their size is bounded.
 */
import { request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { PublicWindow } from '../../../src/api/server/publicWindow.js';
import { ERRORS } from '../../../src/domain/errors.js';
import { Finder } from '../../../tools/docs/page/find.js';
import { isOfOperators, PAGES } from '../../../tools/docs/pages.js';
import type { SearchIndex } from '../../../tools/docs/searchIndex.js';
import { world } from '../../setup/world.js';
import { expectWithin } from '../../support/expectWithin.js';

const FIRST_BYTE_MS_MAX = 50;

interface Page {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly bytes: Buffer;
  readonly firstByteMs: number;
}

const { service } = world({ CELLS: '1' });
/** The content of every page that the first page links to, by path. */
const pages = new Map<string, string>();

/** Sends a request with exactly these headers, and returns the answer without decoding its content. */
function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Page> {
  return new Promise((resolve, reject) => {
    const sentMs = performance.now();
    const sending = request(service.base + path, { method, headers }, (response) => {
      const firstByteMs = performance.now() - sentMs;
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          headers: response.headers as Page['headers'],
          bytes: Buffer.concat(chunks),
          firstByteMs,
        }),
      );
    });
    sending.on('error', reject).end();
  });
}

beforeAll(async () => {
  const first = (await get('/docs')).bytes.toString();
  pages.set('/docs', first);
  for (const [, path] of first.matchAll(/href="(\/docs\/[\w-]+)"/g)) {
    if (!pages.has(path!)) pages.set(path!, (await get(path!)).bytes.toString());
  }
});

test('redirects / to the docs, which include every page that a partner needs', async () => {
  expect(await get('/')).toMatchObject({ status: 302, headers: { location: '/docs' } });
  expect([...pages.keys()]).toEqual(
    expect.arrayContaining(
      [
        ...['quick-start', 'par-sheets', 'client', 'api', 'play-api', 'errors', 'contract', 'changelog'],
        ...['requests', 'webhooks', 'raffles', 'operators'],
      ].map((slug) => `/docs/${slug}`),
    ),
  );
});

test('serves each docs page within 50 ms, compressed if the client accepts it, and with no external content', async () => {
  expect(pages.get('/docs/api')).toContain('href="/api/partner/v1/openapi.json"');
  for (const path of [...pages.keys(), '/docs/style.css', '/docs/page.js', '/docs/search.json']) {
    const plain = await get(path);
    const br = await get(path, { 'Accept-Encoding': 'gzip, br;q=1.0' });
    const gzip = await get(path, { 'Accept-Encoding': 'br;q=0, gzip' });
    expect([plain.status, br.headers['content-encoding'], gzip.headers['content-encoding']]).toEqual([
      200,
      'br',
      'gzip',
    ]);
    expect(brotliDecompressSync(br.bytes).equals(plain.bytes)).toBe(true);
    expect(gunzipSync(gzip.bytes).equals(plain.bytes)).toBe(true);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.headers['content-security-policy']).toMatch(/^default-src 'none';(?!.*unsafe)/);
    expect(plain.headers['x-content-type-options']).toBe('nosniff');
    expectWithin(Math.min(plain.firstByteMs, br.firstByteMs, gzip.firstByteMs), FIRST_BYTE_MS_MAX);
    expect((await get(path, {}, 'HEAD')).bytes.length).toBe(0);
  }
  for (const html of pages.values()) {
    // The only script on a page is the script of the docs site.
    expect(html.match(/<script[^>]*>/g)).toEqual(['<script src="/docs/page.js" defer>']);
    expect(html).not.toMatch(/\son\w+=|<style|\sstyle="|<(link|img)[^>]*(href|src)="(?!\/docs\/|data:,)/);
  }
});

test('the docs pages never ask partners to use the repository or to run the service themselves', () => {
  const ofOperators = ['/docs/operators', '/docs/operator-api'];
  for (const [path, html] of pages) {
    if (ofOperators.includes(path)) continue;
    expect(html, path).not.toMatch(/npm ci|npm start|\.data\/|127\.0\.0\.1:8080|test\/par-sheets|npm pack/);
  }
});

test('serves a search index of at most 200 KB that covers every docs page and every error code', async () => {
  const { bytes } = await get('/docs/search.json');
  expect(bytes.length).toBeLessThan(200_000);
  const index = JSON.parse(bytes.toString()) as SearchIndex;
  expect(index.pages.map(([address]) => address).sort()).toEqual([...pages.keys()].sort());
  const finder = new Finder(index);
  for (const [asked, href] of [
    ['KS-4103', '/docs/errors#KS-4103'],
    ['deal round', '/docs/play-api#dealRound'],
    ['par sheet', '/docs/par-sheets#par-sheets'],
    ['order of checks', '/docs/contract#82-order-of-checks'],
    ['chooseNextOutcome', '/docs/api#chooseNextOutcome'],
  ] as const) {
    expect(
      finder.find(asked).map((each) => each.href),
      asked,
    ).toContain(href);
  }
  for (const [asked, href] of [
    ['duplicate spin', '/docs/requests#repeating-a-request'],
    ['retry', '/docs/requests#repeating-a-request'],
    ['currency', '/docs/contract#51-amounts'],
    ['pagination', '/docs/contract#25-lists'],
    // No section has both words.
    ['pagination zzzzzz', '/docs/contract#25-lists'],
  ] as const)
    expect(finder.find(asked)[0]?.href, asked).toBe(href);
  const ofOperators = new Set(PAGES.filter(isOfOperators).map((page) => page.title));
  for (const asked of ['retry', 'webhook', 'game', 'player', 'key', 'report', 'raffle', 'dealing']) {
    const found = finder.find(asked).map(({ page }) => ofOperators.has(page));
    expect(found.lastIndexOf(false), asked).toBeLessThan(found.includes(true) ? found.indexOf(true) : 99);
    expect(found[0], asked).toBe(false);
  }
  expect(finder.find('zzzzzz')).toEqual([]);
  for (const { code } of Object.values(ERRORS))
    expect(finder.find(code)[0]!.href).toBe(`/docs/errors#${code}`);
});

test('serves the example PAR sheet of the docs, and accepts it as an upload', async () => {
  const { key } = await service.newPartner();
  const sheet = await get('/docs/examples/par-sheet.json');
  const answer = await service.partner('POST', '/par-sheets', key, JSON.parse(sheet.bytes.toString()));
  expect(answer).toMatchObject({ status: 201, body: { gameTitle: 'Lucky Cherry', certifiedRtp: 0.925 } });
});

test('links docs pages only to pages and anchors that exist, with no anchor twice on a page', () => {
  const idsOf = new Map<string, Set<string>>();
  for (const [path, html] of pages) {
    const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!);
    expect(
      ids.filter((id, place) => ids.indexOf(id) !== place),
      path,
    ).toEqual([]);
    idsOf.set(path, new Set(ids));
  }
  for (const [from, html] of pages) {
    for (const [, path, anchor] of html.matchAll(/<a[^>]* href="(\/docs[\w/-]*)?(?:#([^"]+))?"/g)) {
      const ids = idsOf.get(path ?? from);
      expect(ids, `${from} → ${path}`).toBeDefined();
      if (anchor !== undefined) expect(ids!.has(anchor), `${from} → ${path ?? from}#${anchor}`).toBe(true);
    }
  }
});

test('every address of the service that a docs page links to answers with 200', async () => {
  const paths = new Set(
    [...pages.values()].flatMap((html) =>
      [...html.matchAll(/<a[^>]* href="([^"#]+)(?:#[^"]*)?"/g)].map(([, href]) => href!),
    ),
  );
  const own = [...paths].filter((href) => !/^https?:/.test(href));
  expect(own.length).toBeGreaterThan(20);
  for (const path of own) expect((await get(path)).status, path).toBe(200);
});

test('a path below /docs without a page is answered with a page that links to the others, and slashes redirect', async () => {
  for (const path of ['/docs/nope', '/docs/404', '/docs/webhooks/nope', '/docs/nope/']) {
    const { status, headers, bytes } = await get(path);
    expect([status, headers['content-type']], path).toEqual([404, 'text/html; charset=utf-8']);
    const links = [...bytes.toString().matchAll(/<a[^>]* href="(\/docs\/[\w-]+)"/g)].map(([, href]) => href);
    expect(links, path).toEqual(expect.arrayContaining(['/docs/quick-start', '/docs/api']));
  }
  for (const path of ['/docs', '/docs/webhooks', '/docs/verify'])
    expect(await get(`${path}/`), path).toMatchObject({ status: 302, headers: { location: path } });
  expect((await get('/docs/webhooks//')).headers.location).toBe('/docs/webhooks');
});

test('no heading of the search index and no word of a page is escaped twice', async () => {
  const index = JSON.parse((await get('/docs/search.json')).bytes.toString()) as SearchIndex;
  expect(index.sections.map(([, , heading]) => heading).filter((heading) => /&#?\w+;/.test(heading))).toEqual(
    [],
  );
  expect(new Finder(index).find('KS-4103')[0]!.heading).toContain("game's fixed wager");
  for (const [path, html] of pages) expect(html.match(/&amp;(?:#\d+|amp|lt|gt|quot);/g), path).toBeNull();
});

test('the samples have colours without inline styles, and the whole address of the service stays replaceable', () => {
  for (const [path, keyword] of [
    ['/docs/quick-start', '<i class="keyword">import</i>'],
    ['/docs/go-live', '<i class="comment"># the address'],
    ['/docs/api', '<i class="string">'],
  ] as const)
    expect(pages.get(path), path).toContain(keyword);
  for (const [path, html] of pages) {
    const text = html.replaceAll(/<[^>]+>/g, '');
    const marked = html.match(/<span class="origin">/g) ?? [];
    expect(text.match(/https:\/\/spindle\.example\.com/g) ?? [], path).toHaveLength(marked.length);
  }
});

test('serves every image of the docs pages', async () => {
  const images = [...pages.values()].flatMap((html) =>
    [...html.matchAll(/<img[^>]* src="(\/docs\/[^"]+)"/g)].map(([, path]) => path!),
  );
  expect(images.length).toBeGreaterThan(0);
  for (const path of new Set(images)) {
    const { status, headers, bytes } = await get(path);
    expect(status, path).toBe(200);
    expect(String(headers['content-type']), path).toMatch(/^image\//);
    expect(bytes.length, path).toBeGreaterThan(0);
  }
});

describe('the API reference in the docs', () => {
  test('shows each field of a request and each parameter beside the samples of the operation', async () => {
    const { body } = await service.request<{
      paths: Record<
        string,
        Record<string, { operationId: string; parameters?: { name: string; in: string }[] }>
      >;
      components: { schemas: Record<string, { properties?: object }> };
    }>('GET', '/api/partner/v1/openapi.json');
    const page = pages.get('/docs/api')!;
    const fieldsOf = (operationId: string): string[] => {
      const [, section] = page.split(`<section aria-labelledby="${operationId}"`);
      const [fields] = section!.split('<div class="request">')[1]!.split('<div class="tabs">');
      return [...fields!.matchAll(/<dt><code>([^<]+)<\/code>/g)].map(([, name]) => name!);
    };
    expect(fieldsOf('spin')).toEqual(
      expect.arrayContaining(Object.keys(body.components.schemas.SpinBody!.properties!)),
    );
    for (const { operationId, parameters = [] } of Object.values(body.paths).flatMap((each) =>
      Object.values(each),
    ))
      expect(fieldsOf(operationId), operationId).toEqual(
        expect.arrayContaining(parameters.map(({ name }) => name)),
      );
  });

  test('has every operation in the API reference, and an anchor for each error code on the errors page', async () => {
    for (const scope of ['partner', 'operator']) {
      const { body } = await service.request<{
        paths: Record<string, Record<string, { operationId: string }>>;
      }>('GET', `/api/${scope}/v1/openapi.json`);
      const page = pages.get(scope === 'partner' ? '/docs/api' : '/docs/operator-api')!;
      for (const { operationId } of Object.values(body.paths).flatMap((methods) => Object.values(methods))) {
        expect(page).toContain(`id="${operationId}"`);
      }
    }
    for (const { code } of Object.values(ERRORS)) expect(pages.get('/docs/errors')).toContain(`id="${code}"`);
  });
});

test('limits requests for docs pages without a key to 600 a minute for each client, without affecting other clients', () => {
  let nowMs = 0;
  const window = PublicWindow.ofPages(() => nowMs);
  const admitted = (address: string): number =>
    Array.from({ length: 700 }, () => window.admits(address)).filter(Boolean).length;
  expect(admitted('192.0.2.1')).toBe(600);
  expect(admitted('192.0.2.2')).toBe(600);
  for (let i = 0; i < 20_000; i++) window.admits(`2a01:4f8:7:${i.toString(16)}::/64`);
  expect(window.admits('2a01:4f8:7:ffff::/64'), 'the network that floods').toBe(false);
  expect(admitted('198.51.100.1')).toBe(600);
  expect(admitted('2a01:4f8:8:1::/64')).toBe(600);
  nowMs = 60_000;
  expect(window.admits('192.0.2.1')).toBe(true);
});

test('serves the console as one small page that runs only its own scripts and contacts no other host', async () => {
  const first = await get('/console');
  expect(first.status).toBe(200);
  expect(first.headers['content-security-policy']).toMatch(
    /^default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self';.* frame-ancestors 'none'$/,
  );
  const html = first.bytes.toString();
  expect(html).not.toMatch(/<script(?![^>]* src="\/console\/)|<style|\son\w+=|https?:/);
  let total = 0;
  for (const [, path] of html.matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)) {
    const part = await get(path!, { 'Accept-Encoding': 'gzip' });
    expect([part.status, part.headers['content-encoding']], path).toEqual([200, 'gzip']);
    total += part.bytes.length;
  }
  expect(total).toBeGreaterThan(10_000);
  expect(total).toBeLessThan(150_000);
  expect((await get('/console/')).headers.location).toBe('/console');
});
