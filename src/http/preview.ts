/**
 * The preview of version 2 of the partner API (docs/contract.md §16.1), served by the handlers of version 1: amounts are decimal texts, and
 * every list that grows has a cursor in place of pages.
 */
import { isUtf8 } from 'node:buffer';
import { Type } from '#typebox';
import { pathOfVersion } from '../domain/apiVersion.js';
import { withDecimalText, withNumbers } from '../domain/decimalText.js';
import { nullable, Page } from '../domain/requests.js';
import type { ServerRoute } from './listener.js';
import { PARTNER_BASE, type Route } from './route.js';

export const PREVIEW_VERSION = 'v2';
export const PREVIEW_BASE = pathOfVersion(PREVIEW_VERSION);

const { limit } = Page.properties;
const CursorQuery = Type.Object({
  cursor: Type.Optional(
    Type.String({ maxLength: 64, description: 'The `nextCursor` of the answer before: what comes after it' }),
  ),
  limit,
});

/** A route as version 2 has it. */
export function previewOf(route: Route): Route {
  if (route.query !== Page || route.response === undefined) return route;
  const {
    page,
    limit: shown,
    total,
    ...members
  } = (route.response as unknown as { properties: Record<string, Type.TSchema> }).properties;
  const nextCursor = nullable(Type.String({ description: 'For `cursor`; null: there are no more' }));
  return { ...route, query: CursorQuery, response: Type.Object({ ...members, nextCursor }) };
}

const NOT_A_NUMBER = /("path":"[^"]*Usd","message":)"must be a finite number"/g;
const rewritten = (json: string): string =>
  withDecimalText(json).replace(NOT_A_NUMBER, '$1"must be a decimal number as a string"');

/** Puts a route under the base of version 2. @param route of version 1, or of {@link previewOf} */
export function underPreview(route: ServerRoute): ServerRoute {
  return {
    ...route,
    pattern: PREVIEW_BASE + route.pattern.slice(PARTNER_BASE.length),
    handle(exchange) {
      const { body } = exchange;
      exchange.rewrite = rewritten;
      // What is not UTF-8 is refused further on.
      if (body !== undefined && body.length > 0 && isUtf8(body))
        exchange.body = Buffer.from(withNumbers(body.toString('utf8')));
      route.handle(exchange);
    },
  };
}
