/** The preview of version 2 of the partner API (docs/contract.md §16.1): what its endpoints have in place of those of version 1. */
import { Type } from '#typebox';
import { pathOfVersion } from '../domain/apiVersion.js';
import { nullable, Page } from '../domain/requests.js';
import type { Endpoint } from './endpoint.js';

export const PREVIEW_VERSION = 'v2';
export const PREVIEW_BASE = pathOfVersion(PREVIEW_VERSION);

const { limit } = Page.properties;
const CursorQuery = Type.Object({
  cursor: Type.Optional(
    Type.String({ maxLength: 64, description: 'The `nextCursor` of the answer before: what comes after it' }),
  ),
  limit,
});

/** A list that grows has a cursor in place of pages. */
export function previewOf({ query, response }: Endpoint): Partial<Pick<Endpoint, 'query' | 'response'>> {
  if (query !== Page || response === undefined) return {};
  const { page, limit: shown, total, ...members } = (response as Type.TObject).properties;
  const nextCursor = nullable(Type.String({ description: 'For `cursor`; null: there are no more' }));
  return { query: CursorQuery, response: Type.Object({ ...members, nextCursor }) };
}
