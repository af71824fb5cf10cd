/**
 * The preview of version 2 of the partner API (docs/contract.md §16.1), served by the handlers of version 1: amounts are decimal texts, and
 * every list that grows has a cursor in place of pages.
 */
import { isUtf8 } from 'node:buffer';
import { PARTNER_BASE } from '../contract/apis.js';
import { PREVIEW_BASE } from '../contract/preview.js';
import { withDecimalText, withNumbers } from '../domain/decimalText.js';
import type { ServerRoute } from './listener.js';

const NOT_A_NUMBER = /("path":"[^"]*Usd","message":)"must be a finite number"/g;
const rewritten = (json: string): string =>
  withDecimalText(json).replace(NOT_A_NUMBER, '$1"must be a decimal number as a string"');

/** What is not UTF-8 is refused further on. */
const translated = (body: Buffer): Buffer =>
  body.length > 0 && isUtf8(body) ? Buffer.from(withNumbers(body.toString('utf8'))) : body;

/** Puts a route under the base of version 2. @param route of version 1, or as previewOf has it */
export function underPreview(route: ServerRoute): ServerRoute {
  return {
    ...route,
    pattern: PREVIEW_BASE + route.pattern.slice(PARTNER_BASE.length),
    handle(exchange) {
      exchange.rewrite = rewritten;
      exchange.translate = translated;
      route.handle(exchange);
    },
  };
}
