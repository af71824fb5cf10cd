/** Reads and writes CSV by RFC 4180, independently of the service's own code. */
import { at, type Json } from '../decimal.js';

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

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
