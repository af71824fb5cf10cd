/** Reads and writes CSV by RFC 4180, independently of the service's own code. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../support/root.js';
import { at, type Json } from '../decimal.js';

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

const COLUMNS =
  'spinId,createdAt,gameId,playerId,requestId,wagerUsd,payoutUsd,prizeTier,balanceUsd,sandbox,outcomeIndex';
const { components } = JSON.parse(readFileSync(join(ROOT, 'openapi/partner.v1.json'), 'utf8'));
/** Members of a spin's body that were added after these columns; their own columns follow. */
const LATER_MEMBERS = Object.keys(components.schemas.SpinBody.properties).filter(
  (name) => !COLUMNS.split(',').includes(name),
);

const sent = (spin: Json, name: string): string => {
  const text = at(spin, name);
  return text === undefined ? '' : quoted(String(text));
};

export function rowOf(spin: Json, wager: string): string {
  return [
    String(at(spin, 'spinId')),
    String(at(spin, 'createdAt')),
    String(at(spin, 'gameId')),
    sent(spin, 'playerId'),
    sent(spin, 'requestId'),
    wager,
    String(at(spin, 'outcome', 'payoutUsd')),
    String(at(spin, 'outcome', 'prizeTier')),
    String(at(spin, 'balance', 'balanceUsd')),
    at(spin, 'sandbox', 'forced') === undefined ? '' : 'forced',
    String(at(spin, 'outcomeIndex') ?? ''),
    ...LATER_MEMBERS.map((name) => sent(spin, name)),
  ].join(',');
}

export const HEADER = [COLUMNS, ...LATER_MEMBERS].join(',');
