/**
 * Serves the public log and its verifier without a key (docs/proofs.md): checkpoint, tiles, policy and
 * verifier.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS } from '../../domain/errors.js';
import { BUNDLES } from '../../domain/publicLog/growth.js';
import { cutTile, parseTilePath, type TilePlace, widthAt } from '../../domain/publicLog/tiles.js';
import type { Published } from '../../publicLog/log/publicLogReads.store.js';
import { type Publishing, publicRoute } from './docs.js';
import type { Exchange } from './exchange.js';
import type { ServerRoute } from './listener.js';
import type { Services } from './services.js';

const BASE = '/log/';
const OF_ORIGIN = /^([0-9a-f]{64})\/(.+)$/;
const OPEN = 'Access-Control-Allow-Origin: *\r\nX-Content-Type-Options: nosniff';
const TEXT = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';
const FRESH = `${OPEN}\r\nCache-Control: no-cache`;
const NOWHERE = `${OPEN}\r\nCache-Control: no-store`;
const FOR_EVER = `${OPEN}\r\nCache-Control: public, max-age=31536000, immutable`;

interface Answer {
  readonly body: string | Uint8Array;
  readonly type: string;
  readonly headers: string;
}

/** Returns the policy of this log (C2SP tlog-policy). */
const policyText = ({ vkeys, policy }: Published): string =>
  [...vkeys.map((vkey) => `log ${vkey}`), policy ?? 'quorum none', ''].join('\n');

export function publicLogRoutes(
  { store: { publicLogReads }, process }: Pick<Services, 'store' | 'process'>,
  verifyDir: string,
  publishing: Publishing,
): ServerRoute[] {
  const { replies } = publishing;

  /**
   * Returns a tile of any width up to the published tree size. Returns undefined if there is no such tile.
   */
  async function tileAt(place: TilePlace, of: Promise<Published | undefined>): Promise<Answer | undefined> {
    const published = await of;
    if (published === undefined || widthAt(place.level, place.index, published.size) < place.width)
      return undefined;
    const level = place.level === 'entries' ? BUNDLES : place.level;
    const bytes = await publicLogReads.tile(published.logId, level, place.index);
    const body = bytes && cutTile(place, bytes);
    return body && { body, type: BYTES, headers: FOR_EVER };
  }

  async function newest(
    show: (published: Published) => string,
    of = publicLogReads.published(),
  ): Promise<Answer | undefined> {
    const published = await of;
    return published && { body: show(published), type: TEXT, headers: FRESH };
  }

  /**
   * Returns the file of a path below `/log/`, or below `/log/` and the hash of a log's origin. The origin may
   * be that of a log that was replaced.
   */
  function fileAt(path: string): Promise<Answer | undefined> | undefined {
    const [, hash, ofOld] = OF_ORIGIN.exec(path) ?? [];
    const place = parseTilePath(ofOld ?? path);
    if (place === undefined && ofOld !== 'checkpoint') return undefined;
    const of = hash === undefined ? publicLogReads.published() : publicLogReads.publishedBy(hash);
    return place === undefined ? newest(({ note }) => note, of) : tileAt(place, of);
  }

  const served = (pattern: string, find: (path: string) => Promise<Answer | undefined>): ServerRoute =>
    publicRoute(pattern, 'publicLog', publishing, (exchange: Exchange) => {
      find(exchange.head.path).then(
        (answer) => {
          if (answer === undefined) replies.error(exchange, ERRORS.notFound, undefined, { headers: NOWHERE });
          else replies.json(exchange, 200, answer.body, undefined, answer.headers, undefined, answer.type);
        },
        (error: unknown) => {
          const entry = process.isStoreAway(error) ? ERRORS.unavailable : ERRORS.internal;
          process.onFault(exchange, 'publicLog', error, entry);
          replies.error(exchange, entry);
        },
      );
    });

  return [
    served(`${BASE}checkpoint`, () => newest(({ note }) => note)),
    served(`${BASE}policy`, () => newest(policyText)),
    served(`${BASE}*`, async (path) => fileAt(path.slice(BASE.length))),
    ...verifierRoutes(verifyDir, publishing),
  ];
}

/**
 * Creates the routes of the verifier, as a page and as a module. Returns no routes if the build has created
 * no verifier.
 */
function verifierRoutes(folder: string, publishing: Publishing): ServerRoute[] {
  const files = [
    { path: '/verify', name: 'verify.html', type: 'text/html; charset=utf-8' },
    { path: '/verify.mjs', name: 'verify.mjs', type: 'text/javascript; charset=utf-8' },
  ];
  const headers = `${OPEN}\r\nCache-Control: public, max-age=300`;
  return files.flatMap(({ path, name, type }) => {
    let bytes: Buffer;
    try {
      bytes = readFileSync(join(folder, name));
    } catch {
      return [];
    }
    return publicRoute(path, 'verifier', publishing, (exchange) =>
      publishing.replies.json(exchange, 200, bytes, undefined, headers, undefined, type),
    );
  });
}
