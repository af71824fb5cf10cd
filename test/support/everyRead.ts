/** Sends every GET operation of the OpenAPI documents, for tests of conditions in which no read may fail. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer, Client, TestPartner } from './client.js';
import { ROOT } from './root.js';

export interface ReadIds {
  readonly partner: TestPartner;
  readonly gameId: number;
  readonly playerId: string;
  /** A date as `YYYY-MM-DD`. */
  readonly date: string;
}

function pathsOf(api: string, { partner, gameId, playerId, date }: ReadIds): string[] {
  const { paths } = JSON.parse(readFileSync(join(ROOT, 'openapi', `${api}.v1.json`), 'utf8')) as {
    paths: Record<string, Record<string, unknown>>;
  };
  return Object.entries(paths)
    .filter(([, operations]) => operations.get !== undefined)
    .map(([path]) =>
      path
        .replace('/partners/{id}', `/partners/${partner.partnerId}`)
        .replace('/games/{id}', `/games/${gameId}`)
        .replace('{playerId}', encodeURIComponent(playerId))
        .replace('{date}', date)
        .replaceAll(/\{\w+\}/g, '1'),
    );
}

export async function everyRead(
  client: Client,
  ids: ReadIds,
): Promise<(Answer<Record<string, unknown>> & { readonly path: string })[]> {
  return Promise.all([
    ...pathsOf('operator', ids).map(async (path) => ({ path, ...(await client.operator('GET', path)) })),
    ...pathsOf('partner', ids).map(async (path) => ({
      path,
      ...(await client.partner('GET', path, ids.partner.key)),
    })),
  ]);
}
