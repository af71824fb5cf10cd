/** Reads and writes RFC 4180 by hand: the service's own program has no part in it. */
import { at, type Json } from '../decimal.js';

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** The row of a spin as its JSON has it. */
export function rowOf(spin: Json, wager: string): string {
  const requestId = at(spin, 'requestId');
  return [
    String(at(spin, 'spinId')),
    String(at(spin, 'createdAt')),
    String(at(spin, 'gameId')),
    quoted(String(at(spin, 'playerId'))),
    requestId === undefined ? '' : quoted(String(requestId)),
    wager,
    String(at(spin, 'outcome', 'payoutUsd')),
    String(at(spin, 'outcome', 'prizeTier')),
    String(at(spin, 'balance', 'balanceUsd')),
    at(spin, 'sandbox', 'forced') === undefined ? '' : 'forced',
    String(at(spin, 'outcomeIndex') ?? ''),
  ].join(',');
}

export const HEADER =
  'spinId,createdAt,gameId,playerId,requestId,wagerUsd,payoutUsd,prizeTier,balanceUsd,sandbox,outcomeIndex';
